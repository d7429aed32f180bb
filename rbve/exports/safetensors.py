"""The policy's own file, with its model of the behaviour, as rbve reads it."""

from pathlib import Path

from rbve.exports._shipment import Shipment

SUFFIX = ".safetensors"


def write(shipment: Shipment, path: Path) -> None:
    """What Policy.load reads. Random actions are not part of it."""
    if shipment.rules.epsilon or shipment.rules.temperature:
        raise ValueError(
            "a policy's file has no epsilon and temperature; they are of graphs and folders for "
            "other systems"
        )
    shipment.policy.save(path)
