// What only a person can tell a device, as the name that a mirror shows: a device that waits for it has the state
// `needs-PROPERTY`, and refuses with that code what cannot be done before. On a terminal the person is asked then, and
// what was wanted goes on; elsewhere the refusal stands, with the command that mends it.

import Protocols

struct FirstUse {
  let device: String
  let client: Client
  let output: Output
  /// Shows the prompt and reads a line; nil where there is nobody to ask.
  var answer: (String) -> String? = FirstUse.fromTerminal

  private static let prefix = "needs-"

  /// Runs the call; where the device needs to be told something first, it is asked for, set, and the call run again.
  func run<Result>(_ call: () throws -> Result) throws -> Result {
    do {
      return try call()
    } catch let failure as Failure {
      guard case .refused(.deviceError(_, let code, _)) = failure, try provide(code) else { throw failure }
      return try call()
    }
  }

  /// Asks for what the device waits for, where it does.
  func run() throws {
    let state = try client.call(Contract.Status.self, .init(device: device)).devices.first?.state
    _ = try state.map(provide)
  }

  /// Whether the device was told what this word of it says that it needs.
  private func provide(_ word: String) throws -> Bool {
    guard word.hasPrefix(Self.prefix), !output.json, !output.quiet else { return false }
    let schema = try client.call(Contract.Describe.self, .init(device: device)).schemas.first
    guard let property = schema?.properties.first(where: { $0.name == word.dropFirst(Self.prefix.count) }) else { return false }
    var prompt = "\(device) needs its \(property.name). \(Output.oneLine(property.help))\n\(property.name): "
    while let text = answer(prompt), !text.isEmpty {
      guard let mistake = try set(property, text) else { return true }
      prompt = "\(Output.oneLine(mistake.message))\n\(property.name): "
    }
    return false
  }

  /// Sets what was typed, or gives why that cannot be.
  private func set(_ property: Contract.Property, _ text: String) throws(Failure) -> Failure? {
    do throws(Failure) {
      let value = try SetCommand.value(text, for: property, of: device)
      let reading = try client.call(Contract.Set.self, .init(device: device, property: property.name, value: value)).reading
      if let remark = reading.reason { output.note(Output.oneLine(remark)) }
      return nil
    } catch {
      guard error.exitCode == 2 else { throw error }
      return error
    }
  }

  private static func fromTerminal(_ prompt: String) -> String? {
    guard Prompt.isInteractive else { return nil }
    return (try? Prompt.shown(prompt)) ?? nil  // after Ctrl-C the refusal stands
  }
}
