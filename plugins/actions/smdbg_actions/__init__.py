"""The actions of smdbg: StopTraining, Email, SMS and local ones."""
