// Prompts for a property that a device requires before use, such as the name that a mirror shows. Such a device has the state
// `needs-PROPERTY` and rejects calls with that code. Without a terminal there is no prompt: the device's error names the command to run.

import Protocols
import Varlink

struct RequiredPropertyPrompt {
  let device: String
  let client: Client
  let output: Output
  /// Shows the prompt and reads a line; nil without a terminal.
  var promptForLine: (String) -> String? = RequiredPropertyPrompt.promptOnTerminal

  private static let prefix = "needs-"

  /// Runs the call. If the device requires a property first, prompts for it, sets it and runs the call again.
  func run<Result>(_ call: () throws -> Result) throws -> Result {
    do {
      return try call()
    } catch let failure as Failure {
      guard case .rejected(.deviceError(_, let code, _)) = failure, try setProperty(requiredBy: code) else { throw failure }
      return try call()
    }
  }

  /// Prompts for the property that the device requires, if any.
  func run() throws {
    let state = try client.call(Contract.Status.self, .init(device: device)).devices.first?.state
    _ = try state.map(setProperty)
  }

  /// Prompts for and sets the property that this state or error code (`needs-PROPERTY`) names; returns whether it was set.
  private func setProperty(requiredBy code: String) throws -> Bool {
    guard code.hasPrefix(Self.prefix), !output.json, !output.quiet else { return false }
    let schema = try client.call(Contract.Describe.self, .init(device: device)).schemas.first
    guard let property = schema?.properties.first(where: { $0.name == code.dropFirst(Self.prefix.count) }) else { return false }
    var prompt = "\(device) requires \(property.name): \(Output.oneLine(property.help))\n\(property.name): "
    while let text = promptForLine(prompt), !text.isEmpty {
      guard let error = try set(property, text) else { return true }
      prompt = "\(Output.oneLine(error.message))\n\(property.name): "
    }
    return false
  }

  /// Sets the value; returns the error if the value is invalid.
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

  private static func promptOnTerminal(_ prompt: String) -> String? {
    guard Prompt.isInteractive else { return nil }
    return (try? Prompt.line(prompt)) ?? nil  // after Ctrl-C the device's error is reported
  }
}
