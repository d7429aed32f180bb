"""Former names; rbve.sweep.run and rbve.sweep.devices hold them."""

from rbve.sweep.devices import on_all_devices as on_all_devices
