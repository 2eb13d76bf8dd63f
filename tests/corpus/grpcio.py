"""A gRPC client of Python's grpcio, which knows of the server what a set of file descriptors says.

Usage: grpcio.py ADDRESS DESCRIPTORS. Each line of standard input is a question, {"service", "method", "request", "metadata"} in JSON;
each line of standard output its answer: {"answers": [...]} or {"code", "message"}.
"""

import json
import sys

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.empty_pb2 import Empty

address, descriptors = sys.argv[1:]
files = descriptor_pb2.FileDescriptorSet()
with open(descriptors, "rb") as file:
    files.ParseFromString(file.read())
pool = descriptor_pool.DescriptorPool()
for file in files.file:
    pool.Add(file)
channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", 64 << 20)])

for line in sys.stdin:
    asked = json.loads(line)
    service = pool.FindServiceByName(asked["service"])
    method = service.methods_by_name.get(asked["method"])
    # What the file does not know is asked with an empty message.
    Input = message_factory.GetMessageClass(method.input_type) if method else Empty
    Output = message_factory.GetMessageClass(method.output_type) if method else Empty
    is_stream = method is not None and method.server_streaming
    request = json_format.ParseDict(asked["request"], Input())
    call = channel.unary_stream if is_stream else channel.unary_unary
    call = call(
        f"/{asked['service']}/{asked['method']}",
        request_serializer=Input.SerializeToString,
        response_deserializer=Output.FromString,
    )
    try:
        found = call(request, timeout=60, metadata=list(asked["metadata"].items()))
        found = found if is_stream else [found]
        answer = {"answers": [json_format.MessageToDict(message) for message in found]}
    except grpc.RpcError as error:
        answer = {"code": error.code().name, "message": error.details()}
    print(json.dumps(answer), flush=True)
