"""Evaluation: rollouts and what they say about the values a policy claims."""
