"""Encoders as graphs of ONNX, written operator by operator.

MXNet's own exporter is not used: it imports a module that the package onnx no longer has
(`onnx.mapping`), knows none of the operators of `models.quick`, and stops at opset 13.
"""
