// The errors of the socket in a person's words: what is wrong, then how to mend it. One line each, made here and only here.
// Exit codes of vehiclectl: 1 failed, 2 usage, 3 no daemon, 4 no such thing, 5 not connected, 6 timeout, 7 permission.

extension ContractError {
  /// What is wrong, then how to mend it.
  public var message: String {
    switch self {
    case .noSuchDevice(let device): "there is no device \"\(device)\"; \"vehiclectl status\" lists them"
    case .noSuchProperty(_, let property) where Renames.property(property) != nil:
      "property \"\(property)\" has been renamed; use \(Renames.property(property) ?? "")"
    case .noSuchProperty(let device?, let property):
      "\(device) has no property \"\(property)\"; \"vehiclectl describe \(device)\" lists them"
    case .noSuchProperty(nil, let property): "no device has a property \"\(property)\"; \"vehiclectl describe\" lists them"
    case .noSuchAction(let device, let action): "\(device) has no action \"\(action)\"; \"vehiclectl describe \(device)\" lists them"
    case .ambiguous(let reference, let candidates):
      "\"\(reference)\" could be \(candidates.joined(separator: " or ")); name the device too"
    case .readOnly(let device, let property):
      "\(device).\(property) cannot be set; \"vehiclectl describe \(device)\" shows what can"
    case .outOfRange(let property, let message): "\(property): \(message)"
    case .notConnected(let device, let reason): "\(device) is not connected: \(reason); \"vehiclectl status \(device)\" shows its links"
    case .busy(let device, let holder): "\(device) is held by \(holder); try again when it is let go"
    case .leaseRequired(let device): "this moves \(device); take its motion lease first: vehiclectl drive \(device)"
    case .leaseLost(let device, let reason): "the motion lease of \(device) is lost: \(reason); take it again"
    case .timeout(let device, let milliseconds):
      "\(device) did not answer within \(Value.text(Double(milliseconds) / 1000)) s; see that it is switched on and in reach"
    case .deviceError("", _, let message): message
    case .deviceError(let device, let code, let message): "\(device): \(message) (\(code))"
    case .configurationInvalid(let message): "\(message); the running configuration stays"
    case .interfaceNotFound(let interface): "the daemon has no interface \"\(interface)\"; \"vehiclectl version\" lists them"
    case .methodNotFound(let method): "the daemon has no method \"\(method)\"; \"vehiclectl version\" tells whether it is older"
    case .methodNotImplemented(let method): "the daemon cannot do \"\(method)\" yet; a newer one may"
    case .invalidParameter(let parameter): "the parameter \"\(parameter)\" is wrong, missing or unknown; see the interface's text"
    case .permissionDenied(let missing?): "permission denied: \(missing)"
    case .permissionDenied(nil): "permission denied; add yourself to group vehicled (sudo usermod -aG vehicled USER, then log in again)"
    case .expectedMore: "this method answers more than once; ask with --more"
    }
  }

  /// What `vehiclectl` exits with.
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
