// The Varlink errors that methods return: names and typed parameters as sent. They are defined in io.vehicled.varlink and by
// org.varlink.service; the messages are in ErrorMessages.swift.

import Protocols

/// An error of any interface, as sent to the client.
public protocol VarlinkError: Error, Sendable {
  /// The full name on the wire: `io.vehicled.Busy`.
  var name: String { get }
  /// The parameters on the wire. Absent parameters are omitted.
  var parameters: JSON { get }
}

/// An error of io.vehicled or of org.varlink.service.
public enum ContractError: VarlinkError, Equatable {
  case noSuchDevice(device: String)
  case noSuchProperty(device: String?, property: String)
  case noSuchAction(device: String, action: String)
  case ambiguous(reference: String, candidates: [String])
  case readOnly(device: String, property: String)
  case outOfRange(property: String, message: String)
  case notConnected(device: String, reason: String)
  case busy(device: String, holder: String)
  case leaseRequired(device: String)
  case leaseLost(device: String, reason: String)
  case timeout(device: String, milliseconds: Int)
  /// `code` is the raw value of an `ErrorCode`, or a code of a newer daemon.
  case deviceError(device: String, code: String, message: String)
  case configurationInvalid(message: String)

  case interfaceNotFound(interface: String)
  case methodNotFound(method: String)
  case methodNotImplemented(method: String)
  case invalidParameter(parameter: String)
  /// `missing`: the right that the caller lacks, and the remedy, if the daemon reports them.
  case permissionDenied(missing: String? = nil)
  case expectedMore

  /// The full name on the wire.
  public var name: String {
    switch self {
    case .noSuchDevice: "io.vehicled.NoSuchDevice"
    case .noSuchProperty: "io.vehicled.NoSuchProperty"
    case .noSuchAction: "io.vehicled.NoSuchAction"
    case .ambiguous: "io.vehicled.Ambiguous"
    case .readOnly: "io.vehicled.ReadOnly"
    case .outOfRange: "io.vehicled.OutOfRange"
    case .notConnected: "io.vehicled.NotConnected"
    case .busy: "io.vehicled.Busy"
    case .leaseRequired: "io.vehicled.LeaseRequired"
    case .leaseLost: "io.vehicled.LeaseLost"
    case .timeout: "io.vehicled.Timeout"
    case .deviceError: "io.vehicled.DeviceError"
    case .configurationInvalid: "io.vehicled.ConfigurationInvalid"
    case .interfaceNotFound: "org.varlink.service.InterfaceNotFound"
    case .methodNotFound: "org.varlink.service.MethodNotFound"
    case .methodNotImplemented: "org.varlink.service.MethodNotImplemented"
    case .invalidParameter: "org.varlink.service.InvalidParameter"
    case .permissionDenied: "org.varlink.service.PermissionDenied"
    case .expectedMore: "org.varlink.service.ExpectedMore"
    }
  }

  /// The parameters on the wire. Absent parameters are omitted.
  public var parameters: JSON {
    switch self {
    case .noSuchDevice(let device), .leaseRequired(let device): ["device": .string(device)]
    case .noSuchProperty(let device, let property):
      .members([
        "device": device.map(JSON.string), "property": .string(property), "renamedTo": Renames.property(property).map(JSON.string),
      ])
    case .noSuchAction(let device, let action): ["device": .string(device), "action": .string(action)]
    case .ambiguous(let reference, let candidates):
      ["reference": .string(reference), "candidates": .array(candidates.map(JSON.string))]
    case .readOnly(let device, let property): ["device": .string(device), "property": .string(property)]
    case .outOfRange(let property, let message): ["property": .string(property), "message": .string(message)]
    case .notConnected(let device, let reason), .leaseLost(let device, let reason):
      ["device": .string(device), "reason": .string(reason)]
    case .busy(let device, let holder): ["device": .string(device), "holder": .string(holder)]
    case .timeout(let device, let milliseconds): ["device": .string(device), "milliseconds": .int(milliseconds)]
    case .deviceError(let device, let code, let message):
      ["device": .string(device), "code": .string(code), "message": .string(message)]
    case .configurationInvalid(let message): ["message": .string(message)]
    case .interfaceNotFound(let interface): ["interface": .string(interface)]
    case .methodNotFound(let method), .methodNotImplemented(let method): ["method": .string(method)]
    case .invalidParameter(let parameter): ["parameter": .string(parameter)]
    case .permissionDenied(let missing): .members(["missing": missing.map(JSON.string)])
    case .expectedMore: [:]
    }
  }

  /// Returns a device or daemon error whose code is one of the known `ErrorCode`s.
  public static func deviceError(device: String, code: ErrorCode, message: String) -> ContractError {
    .deviceError(device: device, code: code.rawValue, message: message)
  }

  /// Parses an error reply; nil if the name is unknown or the parameters do not match it.
  public init?(name: String, parameters: JSON) {
    func text(_ key: String) -> String? { parameters[key]?.string }
    let device = text("device")
    let error: ContractError?
    switch name {
    case "io.vehicled.NoSuchDevice": error = device.map { .noSuchDevice(device: $0) }
    case "io.vehicled.NoSuchProperty": error = text("property").map { .noSuchProperty(device: device, property: $0) }
    case "io.vehicled.NoSuchAction": error = both(device, text("action")).map { .noSuchAction(device: $0, action: $1) }
    case "io.vehicled.Ambiguous":
      guard case .array(let candidates)? = parameters["candidates"] else { return nil }
      error = text("reference").map { .ambiguous(reference: $0, candidates: candidates.compactMap(\.string)) }
    case "io.vehicled.ReadOnly": error = both(device, text("property")).map { .readOnly(device: $0, property: $1) }
    case "io.vehicled.OutOfRange": error = both(text("property"), text("message")).map { .outOfRange(property: $0, message: $1) }
    case "io.vehicled.NotConnected": error = both(device, text("reason")).map { .notConnected(device: $0, reason: $1) }
    case "io.vehicled.Busy": error = both(device, text("holder")).map { .busy(device: $0, holder: $1) }
    case "io.vehicled.LeaseRequired": error = device.map { .leaseRequired(device: $0) }
    case "io.vehicled.LeaseLost": error = both(device, text("reason")).map { .leaseLost(device: $0, reason: $1) }
    case "io.vehicled.Timeout":
      guard case .int(let milliseconds)? = parameters["milliseconds"] else { return nil }
      error = device.map { .timeout(device: $0, milliseconds: milliseconds) }
    case "io.vehicled.DeviceError":
      guard let code = text("code"), let message = text("message") else { return nil }
      error = device.map { .deviceError(device: $0, code: code, message: message) }
    case "io.vehicled.ConfigurationInvalid": error = text("message").map { .configurationInvalid(message: $0) }
    case "org.varlink.service.InterfaceNotFound": error = text("interface").map { .interfaceNotFound(interface: $0) }
    case "org.varlink.service.MethodNotFound": error = text("method").map { .methodNotFound(method: $0) }
    case "org.varlink.service.MethodNotImplemented": error = text("method").map { .methodNotImplemented(method: $0) }
    case "org.varlink.service.InvalidParameter": error = text("parameter").map { .invalidParameter(parameter: $0) }
    case "org.varlink.service.PermissionDenied": error = .permissionDenied(missing: text("missing"))
    case "org.varlink.service.ExpectedMore": error = .expectedMore
    default: error = nil
    }
    guard let error else { return nil }
    self = error
  }
}

private func both(_ first: String?, _ second: String?) -> (String, String)? {
  if let first, let second { (first, second) } else { nil }
}
