"""The name is there, but nothing that can be called."""

online_softmax_update = 42
