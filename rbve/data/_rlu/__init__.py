"""What RL Unplugged's records are: TFRecord files, their examples, and the kinds there are."""
