// Commands from the broker: which ones are accepted, and what they mean. No I/O.

import ConfigurationFiles
import Observations
import Protocols
import ServiceRuntime
import Varlink

/// A call to the daemon.
enum DaemonCommand: Equatable {
  case set(device: String, property: String, value: Value)
  case run(device: String, action: String, arguments: [String: Value])
}

/// Why a command is not carried out: the cause and the remedy.
struct CommandRejection: Error, Equatable {
  var message: String
}

struct CommandReader {
  /// The maximum size of a payload, in bytes.
  private static let maxSize = 4096
  /// The actions that no client of the broker may run: they delete what a workshop needs, or send anything to the vehicle.
  static let forbidden: Set = ["dtc-clear", "query"]

  let topics: Topics
  private let allowed: [ReferencePattern]

  /// Accepts commands for the properties and actions that match `allowed`.
  init(_ topics: Topics, allowed: [ReferencePattern]) { (self.topics, self.allowed) = (topics, allowed) }

  /// Whether clients of the broker may set this property or run this action.
  func allows(_ device: String, _ name: String) -> Bool {
    !Self.forbidden.contains(name) && allowed.contains { $0.matches(device, name) }
  }

  /// Whether the topic is that of a command.
  func isCommand(_ message: IncomingMessage) -> Bool { topics.command(message.topic) != nil }

  /// Returns the command in a message; nil if its topic is not that of a command. `schema` is that of the device.
  func command(_ message: IncomingMessage, schema: (String) -> Contract.Schema?) throws(CommandRejection) -> DaemonCommand? {
    guard let (device, name, isAction) = topics.command(message.topic) else { return nil }
    let reference = "\(printable(device, limit: 40)).\(printable(name, limit: 60))"
    // A stored command would be carried out at each start.
    guard !message.isRetained else {
      throw CommandRejection(message: "\(reference): retained commands are ignored; publish without the retain flag")
    }
    guard !Self.forbidden.contains(name) else { throw CommandRejection(message: "\(reference) is not available by MQTT; use vehiclectl") }
    guard allows(device, name) else {
      throw CommandRejection(message: "\(reference) is not allowed; add \"\(reference)\" to control in mqtt.toml")
    }
    guard let schema = schema(device) else { throw CommandRejection(message: "there is no device \(printable(device, limit: 40))") }
    guard message.payload.count <= Self.maxSize, let text = String(validating: message.payload, as: UTF8.self) else {
      throw CommandRejection(message: "\(reference): the payload is not text of at most \(Self.maxSize) bytes")
    }
    return isAction ? try action(name, text, schema) : try set(name, text, schema)
  }

  private func set(_ name: String, _ text: String, _ schema: Contract.Schema) throws(CommandRejection) -> DaemonCommand {
    guard let property = schema.properties.first(where: { $0.name == name }), let declared = Property(property) else {
      throw CommandRejection(message: "\(schema.device) has no property \(printable(name, limit: 60))")
    }
    try check(isMotion: property.motion, "\(schema.device).\(name)")
    guard property.writable else { throw CommandRejection(message: "\(schema.device).\(name) is read-only") }
    let rule = ValueRule(declared.type, unit: declared.unit, range: declared.range, choices: declared.choices)
    do throws(ValueError) { return .set(device: schema.device, property: name, value: try rule.parse(text)) } catch {
      throw CommandRejection(message: "\(schema.device).\(name): \(error.description)")
    }
  }

  private func action(_ name: String, _ text: String, _ schema: Contract.Schema) throws(CommandRejection) -> DaemonCommand {
    guard let action = schema.actions.first(where: { $0.name == name }) else {
      throw CommandRejection(message: "\(schema.device) has no action \(printable(name, limit: 60))")
    }
    try check(isMotion: action.motion, "\(schema.device).\(name)")
    return .run(device: schema.device, action: name, arguments: try arguments(text, of: action, schema.device))
  }

  private func check(isMotion: Bool, _ reference: String) throws(CommandRejection) {
    if isMotion { throw CommandRejection(message: "\(reference) moves the vehicle, which is not possible by MQTT; use vehiclectl drive") }
  }

  /// The arguments in a payload: a JSON object, or none if the payload is empty or that of a button of Home Assistant.
  private func arguments(_ text: String, of action: Contract.Action, _ device: String) throws(CommandRejection) -> [String: Value] {
    let place = "\(device).\(action.name)"
    var members: [JSON.Member] = []
    if !text.isEmpty, text != "PRESS" {
      guard case .object(let given)? = JSON(text) else {
        throw CommandRejection(
          message: "\(place): the payload is not a JSON object of arguments, such as {\"\(action.arguments.first?.name ?? "name")\": 1}")
      }
      members = given
    }
    var arguments: [String: Value] = [:]
    for member in members {
      guard let argument = action.arguments.first(where: { $0.name == member.key }), let type = ValueType(rawValue: argument.type) else {
        throw CommandRejection(message: "\(place) has no argument \(printable(member.key, limit: 40))")
      }
      let value: Value
      switch member.value {
      case .bool(let given): value = .bool(given)
      case .int(let given): value = .int(given)
      case .float(let given): value = .float(given)
      case .string(let given): value = .string(given)
      default: throw CommandRejection(message: "\(place): \(argument.name) is not a number, a string or a boolean")
      }
      do throws(ValueError) { arguments[argument.name] = try ValueRule(type).accept(value) } catch {
        throw CommandRejection(message: "\(place): \(argument.name): \(error.description)")
      }
    }
    if let missing = action.arguments.first(where: { !$0.optional && arguments[$0.name] == nil }) {
      throw CommandRejection(message: "\(place): argument \(missing.name) is missing")
    }
    return arguments
  }
}
