"""The personalised ranking models: functions of shared parameters, personal parameters and what one user searched."""
