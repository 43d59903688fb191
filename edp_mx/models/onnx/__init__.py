"""Encoders as graphs of ONNX, written operator by operator.

MXNet's own exporter is not used: of our networks it knows neither the operators of `models.quick`
nor GluonNLP's fused attention, and it fixes the lengths of what it has traced.
"""
