"""What `synmt analyze` reports of models: the weight of syntax, and what probes find."""
