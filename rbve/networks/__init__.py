"""Networks: a torso turns observations into features, a head turns features into a Head."""

from rbve.networks.network import Network, Recurrent, build, flattened, part_labels

__all__ = ["Network", "Recurrent", "build", "flattened", "part_labels"]
