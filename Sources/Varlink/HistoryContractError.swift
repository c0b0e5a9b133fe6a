// The errors of the interface io.vehicled.history. The messages for users are in ErrorMessages.swift.

import Protocols

/// An error of io.vehicled.history.
public enum HistoryContractError: VarlinkError, Equatable {
  /// The device, or its property, has no recorded values. `known`: the names that have recorded values.
  case notRecorded(device: String, property: String? = nil, known: [String])
  case noSuchPeriod(number: Int)
  /// `message` describes the problem and then the remedy.
  case invalidArgument(argument: String, message: String)
  /// `code`: disk-full, read-only, damaged, failed.
  case storeError(code: String, message: String)

  /// The full name on the wire.
  public var name: String {
    switch self {
    case .notRecorded: "io.vehicled.history.NotRecorded"
    case .noSuchPeriod: "io.vehicled.history.NoSuchPeriod"
    case .invalidArgument: "io.vehicled.history.InvalidArgument"
    case .storeError: "io.vehicled.history.StoreError"
    }
  }

  /// The parameters on the wire; absent ones are omitted.
  public var parameters: JSON {
    switch self {
    case .notRecorded(let device, let property, let known):
      .members([
        "device": .string(device), "property": property.map(JSON.string), "known": .array(known.map(JSON.string)),
      ])
    case .noSuchPeriod(let number): ["number": .int(number)]
    case .invalidArgument(let argument, let message): ["argument": .string(argument), "message": .string(message)]
    case .storeError(let code, let message): ["code": .string(code), "message": .string(message)]
    }
  }

  /// Parses an error reply; nil if the name is unknown or the parameters do not match it.
  public init?(name: String, parameters: JSON) {
    func text(_ key: String) -> String? { parameters[key]?.string }
    switch name {
    case "io.vehicled.history.NotRecorded":
      guard let device = text("device"), case .array(let known)? = parameters["known"] else { return nil }
      self = .notRecorded(device: device, property: text("property"), known: known.compactMap(\.string))
    case "io.vehicled.history.NoSuchPeriod":
      guard case .int(let number)? = parameters["number"] else { return nil }
      self = .noSuchPeriod(number: number)
    case "io.vehicled.history.InvalidArgument":
      guard let argument = text("argument"), let message = text("message") else { return nil }
      self = .invalidArgument(argument: argument, message: message)
    case "io.vehicled.history.StoreError":
      guard let code = text("code"), let message = text("message") else { return nil }
      self = .storeError(code: code, message: message)
    default: return nil
    }
  }
}
