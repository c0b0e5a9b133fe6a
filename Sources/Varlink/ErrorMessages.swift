// The messages for all errors of the sockets, one line each: what happened, the cause, what to do.
// Exit codes of vehiclectl: 1 failed, 2 usage, 3 no daemon, 4 not found, 5 not connected, 6 timeout, 7 permission.

import Protocols

extension ContractError {
  /// The message: what happened, the cause, what to do.
  public var message: String {
    switch self {
    case .noSuchDevice(let device): "no device \"\(device)\"; run \"vehiclectl status\" for a list"
    case .noSuchProperty(_, let property) where Renames.property(property) != nil:
      "property \"\(property)\" was renamed; use \(Renames.property(property) ?? "")"
    case .noSuchProperty(let device?, let property):
      "\(device) has no property \"\(property)\"; run \"vehiclectl describe \(device)\" for a list"
    case .noSuchProperty(nil, let property): "no device has a property \"\(property)\"; run \"vehiclectl describe\" for a list"
    case .noSuchAction(let device, let action): "\(device) has no action \"\(action)\"; run \"vehiclectl describe \(device)\" for a list"
    case .ambiguous(let reference, let candidates):
      "\"\(reference)\" is ambiguous: \(candidates.joined(separator: ", ")); add the device name"
    case .readOnly(let device, let property):
      "\(device).\(property) is read-only; run \"vehiclectl describe \(device)\" for the writable properties"
    case .outOfRange(let property, let message): "\(property): \(message)"
    case .notConnected(let device, let reason): "\(device) is not connected: \(reason); run \"vehiclectl status \(device)\" for its links"
    case .busy(let device, let holder): "the motion lease of \(device) is held by \(holder); try again when it is released"
    case .leaseRequired(let device): "motion lease required to move \(device); run \"vehiclectl drive \(device)\""
    case .leaseLost(let device, let reason): "motion lease of \(device) lost: \(reason); acquire it again"
    case .timeout(let device, let milliseconds):
      "\(device) did not respond within \(Value.text(Double(milliseconds) / 1000)) s; check that it is switched on and in range"
    case .deviceError("", _, let message): message
    case .deviceError(let device, let code, let message): "\(device): \(message) (\(code))"
    case .configurationInvalid(let message): "\(message); the running configuration remains in effect"
    case .interfaceNotFound(let interface): "the daemon has no interface \"\(interface)\"; run \"vehiclectl version\" for a list"
    case .methodNotFound(let method): "the daemon has no method \"\(method)\"; run \"vehiclectl version\" to compare versions"
    case .methodNotImplemented(let method): "method \"\(method)\" is not implemented; upgrade the daemon"
    case .invalidParameter(let parameter): "parameter \"\(parameter)\" is invalid, missing or unknown; see io.vehicled(7)"
    case .permissionDenied(let missing?): "permission denied: \(missing)"
    case .permissionDenied(nil): "permission denied; add your user to group vehicled (sudo usermod -aG vehicled USER) and log in again"
    case .expectedMore: "the method returns more than one reply; use --more"
    }
  }

  /// The exit status of `vehiclectl`.
  public var exitCode: Int32 {
    switch self {
    case .busy, .leaseRequired, .leaseLost, .deviceError, .configurationInvalid, .methodNotImplemented: 1
    case .ambiguous, .readOnly, .outOfRange, .invalidParameter, .expectedMore, .interfaceNotFound, .methodNotFound: 2
    case .noSuchDevice, .noSuchProperty, .noSuchAction: 4
    case .notConnected: 5
    case .timeout: 6
    case .permissionDenied: 7
    }
  }
}

extension HistoryContractError {
  /// The message: what happened, the cause, what to do.
  public var message: String {
    switch self {
    case .notRecorded(let device, nil, let known):
      "nothing is recorded for device \"\(device)\"; "
        + (nearest(to: device, among: known).map { "did you mean \($0)?" }
          ?? (known.isEmpty ? "nothing was recorded yet: run \"vehiclectl history status\"" : "recorded: \(known.joined(separator: ", "))"))
    case .notRecorded(let device, let property?, let known):
      "nothing is recorded for \(device).\(property); "
        + (nearest(to: property, among: known).map { "did you mean \(device).\($0)?" }
          ?? "run \"vehiclectl history series \(device)\" for a list")
    case .noSuchPeriod(let number): "no trip, charge or parked period has the number \(number); run \"vehiclectl trips\" for a list"
    case .invalidArgument(_, let message), .storeError(_, let message): message
    }
  }

  /// The exit status of `vehiclectl`.
  public var exitCode: Int32 {
    switch self {
    case .notRecorded, .noSuchPeriod: 4
    case .invalidArgument: 2
    case .storeError: 1
    }
  }
}
