"""Speed, and the limits of the device: costs, ceilings, benchmark, diagnosis."""
