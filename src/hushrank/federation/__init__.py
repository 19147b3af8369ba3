"""One federated round: who takes part, what each client learns, what the server makes of it."""
