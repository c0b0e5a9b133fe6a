// do: runs an action with positional arguments, checked against the schema. The user types secret arguments at a prompt, because every
// process can read the command line. A held action runs until Ctrl-C.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct DoCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "do", abstract: "Run an action.",
    discussion: """
      "vehiclectl describe" lists the actions. The command prompts for secret arguments, or reads them from stdin, one per line.
      With --hold, the action runs until Ctrl-C, like a button that is held down: vehiclectl do buzz --hold
      """)

  @OptionGroup var common: CommonOptions
  @Argument(help: ArgumentHelp("ACTION or DEVICE.ACTION.", valueName: "ref"), completion: .actions)
  var reference: String
  @Argument(parsing: .allUnrecognized, help: ArgumentHelp("The arguments, in the order that describe shows.", valueName: "arg"))
  var arguments: [String] = []
  @Flag(help: "Run until Ctrl-C; only for actions with an argument named \(DoCommand.holdArgument).")
  var hold = false

  /// An action can be held if it has an argument with this name.
  private static let holdArgument = "hold"

  func perform(_ output: Output) throws {
    let reference = try Reference(reference)
    let client = try common.connect(output)
    let (device, action) = try reference.action(of: client)
    client.secrets = Set(action.arguments.filter(\.secret).map(\.name))
    let values = try Self.values(try Arguments.positional(arguments), for: action, hold: hold) { name throws(Failure) in
      try Prompt.secret("\(name): ")
    }
    let parameters = Contract.Call.Parameters(device: device, action: action.name, arguments: values.isEmpty ? nil : values)
    guard action.streams else {
      let prompt = RequiredPropertyPrompt(device: device, client: client, output: output)
      return show(try prompt.run { try client.call(Contract.Call.self, parameters) }, output)
    }
    Interrupt.catchSignals()
    let deadline = common.timeout.map { Clock.monotonic + $0 }
    var lastText: String?
    try client.stream(Contract.Call.self, parameters, firstReply: nil, tick: deadline == nil && !hold ? nil : 0.2, laterReplies: nil) {
      result in
      if let result, output.json || !showProgress(result, &lastText, output) { show(result, output) }
      if Interrupt.received {
        if hold { return false }  // the usual end of a held action
        throw Failure.other("interrupted")
      }
      if let deadline, Clock.monotonic >= deadline { throw Failure.timeout(seconds: common.timeout ?? 0) }
      return true
    }
  }

  /// Shows a progress report: in place on a terminal, otherwise as a line for each new text. Returns false for any other result.
  private func showProgress(_ result: Contract.Call.Result, _ lastText: inout String?, _ output: Output) -> Bool {
    guard let progress = result.progress, progress < 1, let text = result.text, result.rows == nil, result.data == nil else { return false }
    if Terminal.isTerminal(STDERR_FILENO) {
      output.progress("\(Int(max(0, min(1, progress)) * 100)) %  \(Output.oneLine(text))")
    } else if lastText != text {
      output.note(Output.oneLine(text))
    }
    lastText = text
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
      output.note("not shown: \(data.count) bytes of binary data; redirect stdout to a file")
    } else {
      output.bytes(data)
    }
  }

  /// The arguments by name, in their declared types.
  static func values(
    _ given: [String], for action: Contract.Action, hold: Bool = false, promptForSecret: (String) throws(Failure) -> String?
  ) throws(Failure) -> [String: Value] {
    guard let declared = Action(action) else {
      throw .other("cannot run \(action.name): an argument has an unknown type; use a newer vehiclectl")
    }
    guard !hold || declared.arguments.contains(where: { $0.name == holdArgument && $0.type == .bool }) else {
      throw .usage("cannot hold \(action.name): it has no argument \(holdArgument); usage: \(Format.usage(action))")
    }
    var rest = given[...]
    var values: [String: Value] = [:]
    for argument in declared.arguments {
      if hold, argument.name == holdArgument {
        values[holdArgument] = .bool(true)
        continue
      }
      let text = argument.secret ? try promptForSecret(argument.name) : rest.popFirst()
      guard let text, !(argument.secret && argument.optional && text.isEmpty) else {
        if argument.optional { continue }
        throw .usage("missing argument \(argument.name); usage: \(Format.usage(action))")
      }
      do { values[argument.name] = try ValueRule(argument.type).parse(text) } catch {
        let cause = argument.secret ? "it is not \(argument.type.article)" : error.description  // does not repeat a secret
        throw .usage("invalid argument \(argument.name): \(cause); usage: \(Format.usage(action))")
      }
    }
    if !rest.isEmpty, let secret = declared.arguments.first(where: \.secret) {
      // The extra argument may be the secret: do not repeat it.
      throw .usage("too many arguments: \(secret.name) is prompted for or read from stdin; usage: \(Format.usage(action))")
    }
    guard rest.isEmpty else { throw .usage("too many arguments: unexpected \"\(rest.first ?? "")\"; usage: \(Format.usage(action))") }
    return values
  }
}
