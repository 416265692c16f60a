"""What pretraining teaches: equal processor time, frozen features, linear probes."""
