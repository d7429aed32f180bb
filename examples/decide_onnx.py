"""python decide_onnx.py visits.onnx age=61 blood_pressure=158 ward=B"""

import sys

import numpy as np
import onnxruntime

onnxruntime.set_default_logger_severity(3)  # it warns of inputs that may be left out
graph = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
types = {each.name: object if "string" in each.type else float for each in graph.get_inputs()}
row = dict(word.split("=", 1) for word in sys.argv[2:])
columns = {name: np.array([value], types[name]) for name, value in row.items()}
(action,), (q,), (supported,) = graph.run(["action", "q", "supported"], columns)
print(action, q.round(4), "supported" if supported else "no support in the data")
