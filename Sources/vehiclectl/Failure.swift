// Everything that can go wrong for vehiclectl, with its words and its exit code. The daemon's own errors keep the wording
// of ContractError; here stand the client's: no daemon, no permission, no sense.

import Protocols

enum Failure: Error, Equatable {
  /// The daemon's answer, in the contract's words.
  case refused(ContractError)
  /// An error that this client does not know: a newer daemon's.
  case unknown(name: String, parameters: JSON)
  case notRunning(socket: String)
  /// It was there and is gone, or is silent.
  case daemonGone(String)
  /// It is there and closed the connection before it answered anything.
  case tooManyClients
  case noAccess(socket: String)
  case noAccessToInput(path: String)
  /// NetworkManager does not let this user change networks.
  case noAccessToNetworks
  case timeout(seconds: Double)
  /// What answers is no vehicled.
  case notVehicled(String)
  /// The command line makes no sense.
  case usage(String)
  /// There is no device that could be meant.
  case noSuchDevice(String)
  /// No device has such an action.
  case noSuchAction(String)
  /// A property without a value. The second is true when its device is not connected.
  case noValue(String, notConnected: Bool)
  case other(String)

  /// One line: what is wrong, then how to mend it.
  var message: String {
    switch self {
    case .refused(let error): error.message
    case .unknown(let name, let parameters): "the daemon says \(name) \(parameters.text); a newer vehiclectl may know what that means"
    case .notRunning(let socket): "vehicled is not running (nobody listens at \(socket)); start it with: sudo systemctl start vehicled"
    case .daemonGone(let how): "\(how); see: journalctl -u vehicled"
    case .tooManyClients:
      "vehicled took the call and hung up without an answer; it may be full (256 clients are the limit); see: journalctl -u vehicled"
    case .noAccess(let socket):
      "permission denied at \(socket); add yourself to group vehicled (sudo usermod -aG vehicled USER, then log in again)"
    case .noAccessToInput(let path):
      "permission denied at \(path); add yourself to group input (sudo usermod -aG input USER, then log in again)"
    case .noAccessToNetworks:
      "NetworkManager does not let this user change networks; join the toy's network by hand and leave out --join, or ask with sudo"
    case .timeout(let seconds): "no answer within \(Value.text(seconds)) s; give it longer with --timeout"
    case .notVehicled(let what): "what answers is not vehicled: \(what); check --socket and $VEHICLED_SOCKET"
    case .usage(let words), .other(let words), .noSuchDevice(let words): words
    case .noSuchAction(let action): "no device has an action \"\(action)\"; \"vehiclectl describe\" lists them"
    case .noValue(let words, _): words
    }
  }

  var exitCode: Int32 {
    switch self {
    case .refused(let error): error.exitCode
    case .unknown, .other, .notVehicled, .tooManyClients: 1
    case .usage: 2
    case .notRunning, .daemonGone: 3
    case .noSuchAction, .noSuchDevice: 4
    case .noValue(_, let notConnected): notConnected ? 5 : 1
    case .timeout: 6
    case .noAccess, .noAccessToInput, .noAccessToNetworks: 7
    }
  }

  /// `{"error": NAME, "parameters": …}`, as a Varlink error reply; the client's own names have no interface before them.
  var json: JSON {
    switch self {
    case .refused(let error): ["error": .string(error.name), "parameters": error.parameters]
    case .unknown(let name, let parameters): ["error": .string(name), "parameters": parameters]
    default: ["error": .string(name), "parameters": ["message": .string(message)]]
    }
  }

  private var name: String {
    switch self {
    case .notRunning: "NotRunning"
    case .daemonGone: "DaemonGone"
    case .tooManyClients: "TooManyClients"
    case .noAccess, .noAccessToInput, .noAccessToNetworks: "NoAccess"
    case .timeout: "NoAnswer"
    case .notVehicled: "NotVehicled"
    case .usage: "Usage"
    case .noSuchDevice: "NoSuchDevice"
    case .noSuchAction: "NoSuchAction"
    case .noValue: "NoValue"
    case .refused, .unknown, .other: "Failed"
    }
  }
}
