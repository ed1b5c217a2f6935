"""The metrics of `synmt score`, as functions of sums over segments."""
