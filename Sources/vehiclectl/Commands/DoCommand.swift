// do: runs an action with arguments by position, held against the declaration first. Secret arguments never stand on the
// command line, where every process can read them: they are asked for. An action that is held lasts until Ctrl-C.

import ArgumentParser
import Glibc
import Protocols

struct DoCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "do", abstract: "Run an action.",
    discussion: """
      "vehiclectl describe" lists the actions. Secret arguments are asked for, or read from stdin, a line each.
      With --hold an action lasts until Ctrl-C, as a finger on a button: vehiclectl do buzz --hold
      """)

  @OptionGroup var common: CommonOptions
  @Argument(help: ArgumentHelp("ACTION or DEVICE.ACTION.", valueName: "ref"), completion: .actions)
  var reference: String
  @Argument(parsing: .allUnrecognized, help: ArgumentHelp("Its arguments, in the order that describe shows.", valueName: "arg"))
  var arguments: [String] = []
  @Flag(help: "Go on until Ctrl-C; for actions with an argument \(DoCommand.holding).")
  var hold = false

  /// The argument by which an action declares that it can be held.
  private static let holding = "hold"

  func perform(_ output: Output) throws {
    let reference = try Reference(reference)
    let client = try common.connect(output)
    let (device, action) = try reference.action(in: try reference.schemas(client))
    client.secrets = Set(action.arguments.filter(\.secret).map(\.name))
    let values = try Self.values(try Arguments.positional(arguments), for: action, hold: hold) { name throws(Failure) in
      try Prompt.secret("\(name): ")
    }
    let parameters = Contract.Call.Parameters(device: device, action: action.name, arguments: values.isEmpty ? nil : values)
    guard action.streams else {
      let firstUse = FirstUse(device: device, client: client, output: output)
      return show(try firstUse.run { try client.call(Contract.Call.self, parameters) }, output)
    }
    Interrupt.catchSignals()
    let deadline = common.timeout.map { Clock.monotonic + $0 }
    var said: String?
    try client.stream(Contract.Call.self, parameters, first: nil, tick: deadline == nil && !hold ? nil : 0.2, silence: nil) { result in
      if let result, output.json || !isOnTheWay(result, &said, output) { show(result, output) }
      if Interrupt.received {
        if hold { return false }  // letting go is how it ends
        throw Failure.other("interrupted")
      }
      if let deadline, Clock.monotonic >= deadline { throw Failure.timeout(seconds: common.timeout ?? 0) }
      return true
    }
  }

  /// What an action tells on its way stands in one place on a terminal; elsewhere each change of its words is a line.
  private func isOnTheWay(_ result: Contract.Call.Result, _ said: inout String?, _ output: Output) -> Bool {
    guard let progress = result.progress, progress < 1, let text = result.text, result.rows == nil, result.data == nil else { return false }
    if Terminal.isTerminal(STDERR_FILENO) {
      output.progress("\(Int(max(0, min(1, progress)) * 100)) %  \(Output.oneLine(text))")
    } else if said != text {
      output.note(Output.oneLine(text))
    }
    said = text
    return true
  }

  private func show(_ result: Contract.Call.Result, _ output: Output) {
    if output.json { return output.json(JSON(result)) }
    output.progress(nil)
    if let text = result.text {
      output.lines(text.split(separator: "\n", omittingEmptySubsequences: false).map { Output.oneLine(String($0)) })
    }
    if let rows = result.rows {
      let table = Table(titles: result.columns ?? [], rows: rows.map { $0.cells.map { Cell($0) } })
      output.lines(table.lines(width: Output.width, paint: output.paint))
    }
    if let progress = result.progress, progress < 1 { output.progress("\(Int(max(0, min(1, progress)) * 100)) %") }
    guard let data = result.data.flatMap(Base64.decode) else { return }
    if Terminal.isTerminal(STDOUT_FILENO) {
      output.note("\(data.count) bytes came; send them to a file with > FILE")
    } else {
      output.bytes(data)
    }
  }

  /// The arguments by name, in their declared types.
  static func values(
    _ given: [String], for action: Contract.Action, hold: Bool = false, ask: (String) throws(Failure) -> String?
  ) throws(Failure) -> [String: Value] {
    guard let declared = Action(action) else {
      throw .other("\(action.name) takes an argument of a type that this vehiclectl does not know; a newer one may")
    }
    guard !hold || declared.arguments.contains(where: { $0.name == holding && $0.type == .bool }) else {
      throw .usage("\(action.name) cannot be held: it has no argument \(holding); give: \(Format.usage(action))")
    }
    var rest = given[...]
    var values: [String: Value] = [:]
    for argument in declared.arguments {
      if hold, argument.name == holding {
        values[holding] = .bool(true)
        continue
      }
      let text = argument.secret ? try ask(argument.name) : rest.popFirst()
      guard let text, !(argument.secret && argument.optional && text.isEmpty) else {
        if argument.optional { continue }
        throw .usage("the argument \(argument.name) is missing; give: \(Format.usage(action))")
      }
      do { values[argument.name] = try ValueRule(argument.type).parse(text) } catch {
        let what = argument.secret ? "the answer is not \(argument.type.article)" : error.description  // it stays secret
        throw .usage("the argument \(argument.name): \(what); give: \(Format.usage(action))")
      }
    }
    if !rest.isEmpty, let secret = declared.arguments.first(where: \.secret) {
      // What is one too many may be the secret: it is not said back.
      throw .usage("too many arguments: \(secret.name) is asked for, or a line of stdin; give: \(Format.usage(action))")
    }
    guard rest.isEmpty else { throw .usage("too many arguments from \"\(rest.first ?? "")\" on; give: \(Format.usage(action))") }
    return values
  }
}
