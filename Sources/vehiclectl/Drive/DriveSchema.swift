// The motion properties and actions of a device, and the parser for lines of JSON that use them. No I/O, and no code for a particular kind
// of device. An ambiguous line is an error with its line number.

import Protocols
import Varlink

/// The request that one line of input makes.
enum DriveRequest: Equatable {
  case set(property: String, Value)
  case run(action: String, arguments: [String: Value], motion: Bool)

  /// Whether the request is a setpoint, which replaces a queued setpoint. Other requests run in order.
  var isSetPoint: Bool {
    switch self {
    case .set: true
    case .run(_, let arguments, let motion): motion && !arguments.isEmpty
    }
  }
}

struct DriveSchema {
  /// The JSON member that names an action.
  static let actionMember = "do"

  let device: String
  private let properties: [Contract.Property]
  /// The writable button properties.
  private let buttons: Swift.Set<String>
  private let actions: [Contract.Action]

  /// `schema` is the schema from the daemon; if it is nil, the device accepts nothing.
  init(device: String, _ schema: Contract.Schema?) {
    self.device = device
    properties = schema?.properties.filter(\.motion) ?? []
    actions = schema?.actions ?? []
    buttons = Swift.Set(schema?.properties.filter(\.writable).map(\.name) ?? []).intersection(CarButton.allCases.map(Self.name(of:)))
  }

  /// The motion action `tilt` with the arguments roll and pitch. Keys and gamepads drive a device such as an RC car with it.
  var tilt: Contract.Action? {
    actions.first { action in
      action.name == "tilt" && action.motion && ["roll", "pitch"].allSatisfy { name in action.arguments.contains { $0.name == name } }
        && action.arguments.allSatisfy { $0.optional || ["roll", "pitch"].contains($0.name) }
    }
  }

  /// Whether `tilt` has the argument `relative`, which makes angles relative to the neutral position.
  var tiltsRelatively: Bool { tilt?.arguments.contains { $0.name == "relative" } == true }

  /// How keys and sticks drive the device; nil if they cannot.
  var control: (any ManualControl)? { tilt != nil ? TiltControl(isRelative: tiltsRelatively) : ThrottleControl(properties) }

  /// Whether the device has the action `stop`.
  var stops: Bool { action("stop") != nil }

  /// Whether the device has the motion action `continue`.
  var continues: Bool { action("continue")?.motion == true }

  /// Whether the device declares anything that moves it.
  var moves: Bool { !properties.isEmpty || actions.contains(where: \.motion) }

  /// The property for this button, if the device has it.
  func property(of button: CarButton) -> String? { buttons.contains(Self.name(of: button)) ? Self.name(of: button) : nil }

  private static func name(of button: CarButton) -> String { "\(button.rawValue)-button" }

  func action(_ name: String) -> Contract.Action? { actions.first { $0.name == name } }

  /// Parses a line: one motion property, as in `{"target-current": 2.5}`, the arguments of one motion action, as in
  /// `{"roll": 0.1, "pitch": 0}`, or any action by name, as in `{"do": "tilt", "roll": 0.1, "pitch": 0}`.
  func parse(_ line: String, _ number: Int) throws(Failure) -> DriveRequest {
    guard case .object(let members)? = JSON(line) else {
      throw .usage("line \(number): not a JSON object; write \(example)")
    }
    guard !members.isEmpty else { throw .usage("line \(number): empty object; write \(example)") }
    if let name = members.first(where: { $0.key == Self.actionMember })?.value {
      guard let name = name.string else { throw .usage("line \(number): \"\(Self.actionMember)\" must be the name of an action, a string") }
      guard let action = action(name) else {
        let known = actions.map(\.name).joined(separator: ", ")
        throw .usage("line \(number): \(device) has no action \"\(name)\"; it has \(known.isEmpty ? "none" : known)")
      }
      return try run(action, members.filter { $0.key != Self.actionMember }, number)
    }
    let setPoints = actions.filter { isSetPoint($0) && missing(beside: members, $0)?.isEmpty == true }
    if let action = setPoints.first {
      guard setPoints.count == 1 else {
        let names = setPoints.map(\.name).joined(separator: " or ")
        throw .usage("line \(number): ambiguous: it could be \(names); name the action: {\"\(Self.actionMember)\": \"\(action.name)\", …}")
      }
      return try run(action, members, number)
    }
    // A motion property takes precedence over an argument of the same name.
    if members.count > 1 || !properties.contains(where: { $0.name == members[0].key }) {
      let needs = actions.filter(isSetPoint).compactMap { action in
        missing(beside: members, action).map { "\(action.name) requires \($0.joined(separator: " and "))" }
      }
      if !needs.isEmpty { throw .usage("line \(number): \(needs.joined(separator: ", or "))") }
    }
    guard let member = members.first, members.count == 1 else {
      guard actions.contains(where: isSetPoint) else {
        throw .usage("line \(number): \(members.count) motion properties; use one per line")
      }
      throw .usage("line \(number): no action of \(device) takes only \(members.map(\.key).joined(separator: ", ")); write \(example)")
    }
    guard let property = properties.first(where: { $0.name == member.key }) else {
      let known = properties.map(\.name).joined(separator: ", ")
      let remedy = actions.contains(where: isSetPoint) ? "write \(example)" : "it has \(known.isEmpty ? "none" : known)"
      throw .usage("line \(number): \(device) has no motion property \"\(member.key)\"; \(remedy)")
    }
    let value: Value
    do { value = try SetCommand.value(text(member.value), for: property, of: device) } catch {
      throw .usage("line \(number): \(error.message)")
    }
    try checkType(of: member, value, number)
    return .set(property: member.key, value)
  }

  /// An example of a line for this device.
  var example: String {
    if let action = actions.first(where: isSetPoint) {
      let arguments = action.arguments.filter { !$0.optional }
      return "{\((arguments.isEmpty ? action.arguments : arguments).map { "\"\($0.name)\": VALUE" }.joined(separator: ", "))}"
    }
    return "{\"PROPERTY\": VALUE}, as in {\"\(properties.first?.name ?? "target-current")\": 2.5}"
  }

  private func isSetPoint(_ action: Contract.Action) -> Bool { action.motion && !action.arguments.isEmpty }

  /// The required arguments of the action that are not among the members; nil if a member is not one of its arguments.
  private func missing(beside members: [JSON.Member], _ action: Contract.Action) -> [String]? {
    guard members.allSatisfy({ member in action.arguments.contains { $0.name == member.key } }) else { return nil }
    return action.arguments.filter { argument in !argument.optional && !members.contains { $0.key == argument.name } }.map(\.name)
  }

  private func run(_ action: Contract.Action, _ members: [JSON.Member], _ number: Int) throws(Failure) -> DriveRequest {
    guard let declared = Action(action) else {
      throw .other("cannot run \(action.name): an argument has an unknown type; use a newer vehiclectl")
    }
    let usage = "usage: \(Format.usage(action))"
    var values: [String: Value] = [:]
    for member in members {
      guard let argument = declared.arguments.first(where: { $0.name == member.key }) else {
        throw .usage("line \(number): \(action.name) takes no argument \"\(member.key)\"; \(usage)")
      }
      do { values[member.key] = try ValueRule(argument.type).parse(text(member.value)) } catch {
        throw .usage("line \(number): \(member.key): \(error.description); \(usage)")
      }
      if let value = values[member.key] { try checkType(of: member, value, number) }
    }
    if let missing = declared.arguments.first(where: { !$0.optional && values[$0.name] == nil }) {
      throw .usage("line \(number): missing argument \(missing.name) of \(action.name); \(usage)")
    }
    return .run(action: action.name, arguments: values, motion: action.motion)
  }

  /// Rejects a string for a number, as the daemon does.
  private func checkType(of member: JSON.Member, _ value: Value, _ number: Int) throws(Failure) {
    guard let string = member.value.string, value.number != nil else { return }
    throw .usage("line \(number): \(member.key): \"\(string)\" is a string; remove the quotes")
  }

  private func text(_ value: JSON) -> String { value.string ?? value.text }
}
