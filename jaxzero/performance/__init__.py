"""How near to its limits the device is used: costs, ceilings, benchmark, diagnosis."""
