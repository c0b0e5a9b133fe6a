// The services to which vehiclectl connects: their sockets, and how error messages name them.

import Varlink

enum Service: Sendable {
  case daemon, history

  /// The name of the program and of its unit.
  var name: String { self == .daemon ? "vehicled" : "vehicled-history" }

  var defaultSocket: String { self == .daemon ? Client.defaultSocket : HistoryContract.defaultSocket }

  /// The option that sets the socket.
  var socketOption: String { self == .daemon ? "--socket" : "--history-socket" }
  /// The environment variable that sets the default socket.
  var socketVariable: String { self == .daemon ? "VEHICLED_SOCKET" : "VEHICLED_HISTORY_SOCKET" }

  /// The group whose members can use the service.
  var group: String { self == .daemon ? "vehicled" : "vehicled-observe" }

  /// The message for a refused connection: the cause and the remedy.
  func notRunning(socket: String) -> String {
    switch self {
    case .daemon: "vehicled is not running: no daemon is listening on \(socket); start it: sudo systemctl start vehicled"
    case .history:
      "vehicled-history is not running: no service is listening on \(socket); install the package vehicled-history, "
        + "or start it: sudo systemctl enable --now vehicled-history"
    }
  }
}
