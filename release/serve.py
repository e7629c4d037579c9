"""Serves a folder by TLS on this machine alone, and prints its port and its process. `python release/serve.py FOLDER CERTIFICATE KEY`"""

import os
import ssl
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

folder, certificate, key = sys.argv[1:]
server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder))
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, os.getpid(), flush=True)
server.serve_forever()
