"""Recording data: an online DQN while it learns, a saved policy with noise, or a uniform policy."""
