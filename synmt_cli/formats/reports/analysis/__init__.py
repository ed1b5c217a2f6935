"""The reports of `synmt analyze` on models: the weight of syntax, and what probes find."""
