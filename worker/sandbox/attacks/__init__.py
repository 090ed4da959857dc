"""What attacks the sandbox: probes, what they aim at, and the sandbox with one layer left out. No part of the sandbox."""
