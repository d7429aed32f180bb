"""What a policy is worth by a log alone: off-policy estimates, their intervals and their gates."""
