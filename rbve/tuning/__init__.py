"""Search for settings: trials are jobs as any other, proposed and stopped early by Optuna."""
