using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "internet", network = (allow = ["private", "local"])),
    (name = "data", disk = (path = "data", writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);

const main :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-10-01",
  bindings = [
    (name = "Assistant", durableObjectNamespace = "Assistant"),
    (name = "PROVIDER", fromEnvironment = "PROVIDER"),
  ],
  durableObjectNamespaces = [(className = "Assistant", uniqueKey = "assistant", enableSql = true)],
  durableObjectStorage = (localDisk = "data"),
);
