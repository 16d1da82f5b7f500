"""Read the configuration of a Slurm site: slurm.conf, QOS, associations, shares and reservations."""
