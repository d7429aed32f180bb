"""Many jobs: one list, run on all devices of this machine."""
