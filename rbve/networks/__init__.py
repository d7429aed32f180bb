"""Networks: a torso turns observations into features, a head turns features into a Head."""

from rbve.networks.build import Network, build, flattened

__all__ = ["Network", "build", "flattened"]
