// The errors of vehiclectl with their messages and exit codes. ContractError has the messages of the daemon's errors.

import Protocols
import Varlink

enum Failure: Error, Equatable {
  /// An error that the daemon returned.
  case rejected(ContractError)
  /// An error that the history service returned.
  case history(HistoryContractError)
  /// A device, property or action that does not exist, as the daemon reports it, and the nearest name that exists.
  case unknownReference(ContractError, suggestion: String?)
  /// An error that this version does not know, from a newer daemon.
  case unknown(name: String, parameters: JSON)
  case notRunning(socket: String, Service = .daemon)
  /// The connection broke, or the service stopped replying.
  case daemonGone(String, Service = .daemon)
  /// The daemon closed the connection before its first reply, because of its configuration or a limit.
  case closedWithoutReply
  case noAccess(socket: String, Service = .daemon)
  case noAccessToInput(path: String)
  /// NetworkManager does not let this user change networks.
  case noAccessToNetworks
  case timeout(seconds: Double)
  /// The server at the socket is not the expected one.
  case notVehicled(String, Service = .daemon)
  /// The command line is invalid.
  case usage(String)
  /// No device matches.
  case noSuchDevice(String)
  /// No property matches.
  case noSuchProperty(String)
  /// No device has such an action.
  case noSuchAction(String, suggestion: String? = nil)
  /// A property without a value; `notConnected` if its device is not connected.
  case noValue(String, notConnected: Bool)
  case other(String)

  /// The message, in the form `what happened: cause; what to do`.
  var message: String {
    switch self {
    case .rejected(let error): error.message
    case .history(let error): error.message
    case .unknownReference(let error, let suggestion): Self.message(of: error, suggesting: suggestion)
    case .unknown(let name, let parameters): "unknown error from the daemon: \(name) \(parameters.text); use a newer vehiclectl"
    case .notRunning(let socket, let service): service.notRunning(socket: socket)
    case .daemonGone(let how, let service): "\(how); see: journalctl -u \(service.name)"
    case .closedWithoutReply:
      "vehicled closed the connection without a reply: its configuration may be invalid, or it may have reached the limit of 256 clients, "
        + "or the limit of this user; see: journalctl -u vehicled"
    case .noAccess(let socket, let service):
      "cannot open \(socket): permission denied; \(SocketAccess(to: socket, of: service).remedy)"
    case .noAccessToInput(let path):
      "cannot open \(path): permission denied; add yourself to group input (sudo usermod -aG input USER), then log in again"
    case .noAccessToNetworks:
      "cannot change networks: NetworkManager denies permission; use sudo, or join the toy's network by hand and omit --join"
    case .timeout(let seconds): "no reply within \(Value.text(seconds)) s; use --timeout to wait longer"
    case .notVehicled(let what, let service):
      "the server is not \(service.name): \(what); check \(service.socketOption) and $\(service.socketVariable)"
    case .usage(let message), .other(let message), .noSuchDevice(let message), .noSuchProperty(let message): message
    case .noSuchAction(let action, let suggestion):
      "no such action \"\(action)\": no device has it; \(suggestion.map { "did you mean \($0)?" } ?? "list actions: vehiclectl describe")"
    case .noValue(let message, _): message
    }
  }

  var exitCode: Int32 {
    switch self {
    case .rejected(let error), .unknownReference(let error, _): error.exitCode
    case .history(let error): error.exitCode
    case .unknown, .other, .notVehicled, .closedWithoutReply: 1
    case .usage: 2
    case .notRunning, .daemonGone: 3
    case .noSuchAction, .noSuchDevice, .noSuchProperty: 4
    case .noValue(_, let notConnected): notConnected ? 5 : 1
    case .timeout: 6
    case .noAccess, .noAccessToInput, .noAccessToNetworks: 7
    }
  }

  /// `{"error": NAME, "parameters": …}` as in a Varlink error reply; names of the client's own errors have no interface prefix.
  var json: JSON {
    switch self {
    case .rejected(let error), .unknownReference(let error, _): ["error": .string(error.name), "parameters": error.parameters]
    case .history(let error): ["error": .string(error.name), "parameters": error.parameters]
    case .unknown(let name, let parameters): ["error": .string(name), "parameters": parameters]
    default: ["error": .string(name), "parameters": ["message": .string(message)]]
    }
  }

  /// The error's message, with the suggestion in place of its remedy.
  private static func message(of error: ContractError, suggesting suggestion: String?) -> String {
    guard let suggestion, let end = error.message.firstRange(of: "; run ") else { return error.message }
    return "\(error.message[..<end.lowerBound]); did you mean \(suggestion)?"
  }

  private var name: String {
    switch self {
    case .notRunning: "NotRunning"
    case .daemonGone: "DaemonGone"
    case .closedWithoutReply: "ConnectionClosed"
    case .noAccess, .noAccessToInput, .noAccessToNetworks: "NoAccess"
    case .timeout: "NoAnswer"
    case .notVehicled: "NotVehicled"
    case .usage: "Usage"
    case .noSuchDevice: "NoSuchDevice"
    case .noSuchProperty: "NoSuchProperty"
    case .noSuchAction: "NoSuchAction"
    case .noValue: "NoValue"
    case .rejected, .history, .unknownReference, .unknown, .other: "Failed"
    }
  }
}
