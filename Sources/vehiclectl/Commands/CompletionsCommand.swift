// completions: the completion script for a shell, and completion of names from the daemon's schemas.

import ArgumentParser
import Protocols
import Varlink

struct CompletionsCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "completions", abstract: "Print the completion script for a shell.",
    discussion: "For bash: vehiclectl completions bash | sudo tee /etc/bash_completion.d/vehiclectl >/dev/null")

  @OptionGroup var common: CommonOptions
  @Argument(help: "The shell: bash, zsh or fish.", completion: .list(CompletionShell.allCases.map(\.rawValue)))
  var shell: String

  func perform(_ output: Output) throws {
    guard let shell = CompletionShell(rawValue: shell) else {
      throw Failure.usage(
        "unsupported shell \"\(shell)\"; use one of \(CompletionShell.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    output.line(CompletionScript.text(for: shell))
  }
}

extension CompletionKind {
  /// Completes the names of devices.
  static var devices: CompletionKind { schemas { $0.map(\.device) } }
  /// Completes the names of devices that have this property.
  static func devices(with property: String) -> CompletionKind {
    schemas { $0.filter { $0.properties.contains { $0.name == property } }.map(\.device) }
  }
  /// Completes the names of devices that have this action.
  static func devices(doing action: String) -> CompletionKind {
    schemas { $0.filter { $0.actions.contains { $0.name == action } }.map(\.device) }
  }
  /// Completes the names of toys.
  static var toys: CompletionKind { schemas { $0.filter { $0.kind == Toy.kind }.map(\.device) } }
  /// Completes the paths of input devices for driving.
  static var inputs: CompletionKind {
    .custom { _, _, _ in [DriveCommand.anyInput] + EventDevice.names(in: EventDevice.directory).map { "\(EventDevice.directory)/\($0)" } }
  }
  /// Completes the names of properties: DEVICE.PROPERTY, and also PROPERTY if only one device has it.
  static var properties: CompletionKind { schemas { names($0) { $0.properties.map(\.name) } } }
  /// Completes the names of properties that can be set without the motion lease.
  static var writable: CompletionKind { schemas { names($0) { $0.properties.filter { $0.writable && !$0.motion }.map(\.name) } } }
  /// Completes the names of actions that do not require the motion lease.
  static var actions: CompletionKind { schemas { names($0) { $0.actions.filter { !$0.motion }.map(\.name) } } }

  /// Completes from the schemas; gives up after 200 ms because the user is waiting.
  private static func schemas(_ names: @escaping @Sendable ([Contract.Schema]) -> [String]) -> CompletionKind {
    .custom { words, _, _ in
      let given = words.firstIndex(of: "--socket").flatMap { $0 + 1 < words.count ? words[$0 + 1] : nil }
      let path = given ?? Environment["VEHICLED_SOCKET"] ?? Client.defaultSocket
      let schemas = try? Client(path: path, timeout: 0.2).call(Contract.Describe.self, .init(device: nil)).schemas
      return names(schemas ?? [])
    }
  }

  private static func names(_ schemas: [Contract.Schema], _ memberNames: (Contract.Schema) -> [String]) -> [String] {
    let all = schemas.map { schema in (schema.device, memberNames(schema)) }
    let counts = Dictionary(all.flatMap(\.1).map { ($0, 1) }, uniquingKeysWith: +)
    return all.flatMap { device, names in names.filter { counts[$0] == 1 } + names.map { "\(device).\($0)" } }
  }
}
