"""python decide_onnx.py visits.onnx age=61 blood_pressure=158 ward=B"""

import sys

import numpy as np
import onnxruntime

graph = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
types = {each.name: object if "string" in each.type else float for each in graph.get_inputs()}
row = [word.split("=", 1) for word in sys.argv[2:]]
columns = {name: np.array([value], types[name]) for name, value in row}
action, q, supported = graph.run(["action", "q", "supported"], columns)
print(action[0], q[0].round(4), "supported" if supported[0] else "no support in the data")
