// What a device that is driven can be told, and the lines of JSON that say it. Pure: the schema decides, nothing here knows a
// kind. Must never guess: a line that could mean two things, or nothing, is refused with its number and the mend.
//
//   {"target-current": 2.5}                      one motion property
//   {"roll": 0.1, "pitch": 0}                    the arguments of one motion action, found by their names
//   {"do": "stop"}  {"do": "tilt", "roll": 0.1}  any action by name, its arguments beside it

import Protocols

/// What a line asks for.
enum DriveRequest: Equatable {
  case set(property: String, Value)
  case run(action: String, arguments: [String: Value], motion: Bool)

  /// It says how to move on, and takes the place of what was said before. Everything else is done in its turn.
  var isSetPoint: Bool {
    switch self {
    case .set: true
    case .run(_, let arguments, let motion): motion && !arguments.isEmpty
    }
  }
}

struct DriveSchema {
  /// The member that names an action.
  static let naming = "do"

  let device: String
  private let properties: [Contract.Property]
  /// Those of the properties of buttons that can be set.
  private let buttons: Swift.Set<String>
  private let actions: [Contract.Action]

  /// Of a device that declares nothing there is nothing to say.
  init(device: String, _ schema: Contract.Schema?) {
    self.device = device
    properties = schema?.properties.filter(\.motion) ?? []
    actions = schema?.actions ?? []
    buttons = Swift.Set(schema?.properties.filter(\.writable).map(\.name) ?? []).intersection(ScreenHalf.allCases.map(Self.buttonName))
  }

  /// The action with both angles, by which a person can drive.
  var tilt: Contract.Action? {
    actions.first { action in
      action.name == "tilt" && action.motion && ["roll", "pitch"].allSatisfy { name in action.arguments.contains { $0.name == name } }
        && action.arguments.allSatisfy { $0.optional || ["roll", "pitch"].contains($0.name) }
    }
  }

  /// Whether a tilt can be said to count from neutral already.
  var tiltsRelatively: Bool { tilt?.arguments.contains { $0.name == "relative" } == true }

  /// The property that presses and releases this button; nil: the device has none.
  func button(_ half: ScreenHalf) -> String? { buttons.contains(Self.buttonName(half)) ? Self.buttonName(half) : nil }

  private static func buttonName(_ half: ScreenHalf) -> String { "\(half.rawValue)-button" }

  /// An action by name.
  func action(_ name: String) -> Contract.Action? { actions.first { $0.name == name } }

  /// What the line asks for.
  func parse(_ line: String, _ number: Int) throws(Failure) -> DriveRequest {
    guard case .object(let members)? = JSON(line) else {
      throw .usage("line \(number) is no JSON object; write \(example)")
    }
    guard !members.isEmpty else { throw .usage("line \(number) asks for nothing; write \(example)") }
    if let name = members.first(where: { $0.key == Self.naming })?.value {
      guard let name = name.string else { throw .usage("line \(number): \"\(Self.naming)\" takes the name of an action, as a text") }
      guard let action = action(name) else {
        let known = actions.map(\.name).joined(separator: ", ")
        throw .usage("line \(number): \(device) has no action \"\(name)\"; it has \(known.isEmpty ? "none" : known)")
      }
      return try run(action, members.filter { $0.key != Self.naming }, number)
    }
    let setPoints = actions.filter { isSetPoint($0) && missing(beside: members, $0)?.isEmpty == true }
    if let action = setPoints.first {
      guard setPoints.count == 1 else {
        let names = setPoints.map(\.name).joined(separator: " or ")
        throw .usage("line \(number) could be \(names); name the action: {\"\(Self.naming)\": \"\(action.name)\", …}")
      }
      return try run(action, members, number)
    }
    // What names a motion property means just that.
    if members.count > 1 || !properties.contains(where: { $0.name == members[0].key }) {
      let needs = actions.filter(isSetPoint).compactMap { action in
        missing(beside: members, action).map { "\(action.name) needs \($0.joined(separator: " and ")) as well" }
      }
      if !needs.isEmpty { throw .usage("line \(number): \(needs.joined(separator: ", or "))") }
    }
    guard let member = members.first, members.count == 1 else {
      guard actions.contains(where: isSetPoint) else {
        throw .usage("line \(number) names \(members.count) motion properties; give one, for each takes the place of the other")
      }
      throw .usage("line \(number): no action of \(device) takes just \(members.map(\.key).joined(separator: ", ")); write \(example)")
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

  /// A line that this device understands.
  var example: String {
    if let action = actions.first(where: isSetPoint) {
      let arguments = action.arguments.filter { !$0.optional }
      return "{\((arguments.isEmpty ? action.arguments : arguments).map { "\"\($0.name)\": VALUE" }.joined(separator: ", "))}"
    }
    return "{\"PROPERTY\": VALUE}, as in {\"\(properties.first?.name ?? "target-current")\": 2.5}"
  }

  private func isSetPoint(_ action: Contract.Action) -> Bool { action.motion && !action.arguments.isEmpty }

  /// The arguments that the action needs beside these; nil where these are not all its own.
  private func missing(beside members: [JSON.Member], _ action: Contract.Action) -> [String]? {
    guard members.allSatisfy({ member in action.arguments.contains { $0.name == member.key } }) else { return nil }
    return action.arguments.filter { argument in !argument.optional && !members.contains { $0.key == argument.name } }.map(\.name)
  }

  private func run(_ action: Contract.Action, _ members: [JSON.Member], _ number: Int) throws(Failure) -> DriveRequest {
    guard let declared = Action(action) else {
      throw .other("\(action.name) takes an argument of a type that this vehiclectl does not know; a newer one may")
    }
    let usage = "it is called as \(Format.usage(action))"
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
      throw .usage("line \(number): the argument \(missing.name) of \(action.name) is missing; \(usage)")
    }
    return .run(action: action.name, arguments: values, motion: action.motion)
  }

  /// A string is no number, whatever stands in it: the daemon refuses it as well.
  private func checkType(of member: JSON.Member, _ value: Value, _ number: Int) throws(Failure) {
    guard let string = member.value.string, value.number != nil else { return }
    throw .usage("line \(number): \(member.key): \"\(string)\" is a string; remove the quotes")
  }

  private func text(_ value: JSON) -> String { value.string ?? value.text }
}
