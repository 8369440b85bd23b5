"""How well the rules find faults in real, small trainings: `make detection`."""
