// setup: finds a device, writes its section of the configuration, reloads, and follows the connection until the first values
// arrive. The steps are in Setup/.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct SetupCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "setup", abstract: "Find a device, add it to the configuration and connect it.",
    discussion: """
      Looks for Bluetooth devices in range, serial ports, CAN interfaces, Wi-Fi adapters at their usual address and gpsd on this computer, \
      asks for what it cannot detect, appends the device's lines to the configuration, reloads it, and shows each step of the connection. \
      With LINK, it scans only to recognise the kind of a Bluetooth device; with --yes, a device that it does not recognise requires --kind.
      Enter accepts the default in brackets. Answers can also be piped in, one per line; --yes accepts every default.
      If the file requires root, the lines are added with sudo, or printed.
      With --json (and --yes): {"device","file","lines"}.
      """)

  @OptionGroup var common: CommonOptions
  @Option(
    help: ArgumentHelp("The daemon's configuration file (default: \(ConfigurationChange.defaultPath)).", valueName: "path"),
    completion: .file())
  var config: String?
  @Option(help: "The kind of the device (default: recognise it, or ask).", completion: .list(SetupKind.all.map(\.name)))
  var kind: String?
  @Option(help: "The name of the device (default: derived from its kind, such as car).")
  var name: String?
  @Option(help: ArgumentHelp("Scan for this many seconds, 1 to 3600.", valueName: "n"), transform: WatchCommand.positive)
  var seconds = 10
  @Flag(help: "Accept every default without asking.")
  var yes = false
  @Flag(help: "Append the section on standard input to the file, check it and reload; setup runs this with sudo.")
  var append = false
  @Argument(help: "serial:/PATH, tcp:HOST:PORT, ble:NAME, slcan:LINK or can:INTERFACE (default: search).")
  var link: String?

  func validate() throws {
    if seconds > 3600 { throw ValidationError("invalid --seconds \(seconds); use 1 to 3600") }
    if let kind, SetupKind[kind] == nil {
      throw ValidationError("unknown kind \"\(kind)\"; use one of \(SetupKind.all.map(\.name).joined(separator: ", "))")
    }
  }

  func perform(_ output: Output) throws {
    if append { return try appendInput(output) }
    guard yes || !output.json else { throw Failure.usage("cannot ask with --json; add --yes to accept the defaults") }
    guard yes || Terminal.isTerminal(STDIN_FILENO) || Self.inputHasAnswers else {
      throw Failure.usage("cannot ask: standard input is not a terminal; use --yes, or pipe one answer per line")
    }
    let file = try configurationFile()
    let devices = try common.connect(output).call(Contract.Status.self, .init(device: nil)).devices
    let dialogue = SetupDialogue(
      acceptsDefaults: yes, isAtTerminal: Prompt.isInteractive, ask: { prompt throws(Failure) in try Prompt.line(prompt) },
      remark: { output.promptText([$0]) })
    let search = DeviceSearch(common: common, output: output, seconds: seconds, devices: devices)
    guard var candidate = try link.map({ url throws(Failure) in try search.candidate(of: url) }) ?? search.choose(dialogue) else { return }
    if let link, kind == nil, candidate.transport == "ble", LinkText.body(of: link) != "auto" { candidate.kind = try search.kind(of: link) }
    let section = try section(for: candidate, among: Set(devices.map(\.name)), dialogue)
    guard try add(section, to: file, dialogue, output) else { return }
    if output.json {
      return output.json(["device": .string(section.name), "file": .string(file), "lines": .array(section.lines.map(JSON.string))])
    }
    do { try ConnectionFollower(device: section.name, common: common, output: output).run() } catch {
      if section.kind == "obd", ["slcan", "can"].contains(candidate.transport) {
        output.note("to listen to the bus instead of sending requests, write kind = \"can\" in section [device.\(section.name)] of \(file)")
      }
      throw error
    }
    if section.kind == "can", !section.options.contains(where: { $0.key == "vehicle" }) {
      let folder = file.lastIndex(of: "/").map { file[...$0] } ?? ""
      output.note(
        "import the signals of a DBC file: vehiclectl import FILE --device \(section.name) --output \(folder)signals.d/\(section.name).toml"
      )
    }
    try RequiredPropertyPrompt(device: section.name, client: try common.connect(output), output: output).run()
    output.note("\(section.name) is set up; next: vehiclectl watch, or vehiclectl status \(section.name)")
  }

  /// Whether stdin may have answers: it is not a device such as /dev/null.
  private static var inputHasAnswers: Bool {
    var state = stat()
    return fstat(STDIN_FILENO, &state) == 0 && state.st_mode & S_IFMT != S_IFCHR
  }

  /// The configuration file of the daemon. The default path applies only to the daemon on the default socket.
  private func configurationFile() throws(Failure) -> String {
    if let config { return config }
    guard common.socketPath == Client.defaultSocket else {
      throw .usage("unknown configuration file of the daemon at \(common.socketPath); name it with --config PATH")
    }
    return ConfigurationChange.defaultPath
  }

  /// Returns the section of the device; asks for each setting that is not known.
  private func section(for candidate: Candidate, among names: Set<String>, _ dialogue: SetupDialogue) throws -> DeviceSection {
    let possible = SetupKind.all.filter { $0.schemes.contains(candidate.transport) || candidate.transport == "replay" }.map(\.name)
    let recognised = kind ?? candidate.kind
    guard recognised != nil || !yes || candidate.transport != "ble" else {
      if candidate.address == "auto" {
        throw Failure.usage("ble:auto fits devices of several kinds; give the kind with --kind: \(possible.joined(separator: ", "))")
      }
      throw Failure.usage(
        "cannot recognise \(candidate.name ?? candidate.address): it was not found within \(seconds) s, or advertises no known name or "
          + "service; give its kind with --kind: \(possible.joined(separator: ", "))")
    }
    let word = try recognised ?? dialogue.word("kind of device", of: possible, default: possible[0])
    guard let kind = SetupKind[word] else { throw Failure.usage("cannot set up a device of kind \(word); see vehicled.toml(5)") }
    var answers: [String: String] = [:]
    for question in kind.questions where question.isAsked(for: candidate, answers) {
      let fallback = question.fallback(candidate)
      if question.key == "protocol", candidate.isVESC {
        answers[question.key] = fallback
      } else if question.choices.isEmpty {
        answers[question.key] = try dialogue.text(question.text, default: fallback, problem: question.problem)
      } else {
        answers[question.key] = try dialogue.word(question.text, of: question.choices, default: fallback)
      }
    }
    let problem = { (name: String) in DeviceSection.problem(withName: name, names) }
    if let name, let message = problem(name) { throw Failure.usage(message) }
    let name = try self.name ?? dialogue.text("name of the device", default: DeviceSection.unused(kind.deviceName, names), problem: problem)
    return DeviceSection(candidate, kind, name: name, answers)
  }

  /// Shows the lines, and adds them to the file if the user agrees. Returns whether the daemon has loaded them.
  private func add(_ section: DeviceSection, to file: String, _ dialogue: SetupDialogue, _ output: Output) throws -> Bool {
    let change = ConfigurationChange(path: file, lines: section.lines)
    if !output.json { output.lines([""] + section.lines.map(Output.oneLine) + [""]) }
    if change.isPermitted {
      guard try dialogue.agrees("add these lines to \(file)") else { return false }
      try change.apply(device: section.name) { try common.connect(output).call(Contract.Reload.self, .init()).changed }
      return true
    }
    guard dialogue.isAtTerminal, !yes, let program = ChildProcess.ownPath else {
      throw Failure.other("cannot write \(file): permission denied; use sudo, or add these lines to it and run vehiclectl reload")
    }
    guard try dialogue.agrees("add these lines to \(file) with sudo") else {
      output.note("nothing written; add the lines to \(file), then run: vehiclectl reload")
      return false
    }
    let arguments = ["sudo", program, "setup", "--append", "--config", file, "--socket", common.socketPath]
    guard let result = ChildProcess.run(arguments, input: section.lines.map { $0 + "\n" }.joined()) else {
      throw Failure.other("cannot run sudo: not found; add the lines to \(file) as root, then run: vehiclectl reload")
    }
    guard result.status == 0 else { throw ExitCode.failure }  // sudo or vehiclectl has reported the error
    return true
  }

  /// Appends the section on stdin.
  private func appendInput(_ output: Output) throws {
    var lines: [String] = []
    while let line = try Prompt.line("") { lines.append(line) }
    guard let device = DeviceSection.name(in: lines) else {
      throw Failure.usage("standard input has no section; write [device.NAME], then lines of KEY = VALUE")
    }
    let change = ConfigurationChange(path: try configurationFile(), lines: lines)
    try change.apply(device: device) { try common.connect(output).call(Contract.Reload.self, .init()).changed }
    if output.json { output.json(["device": .string(device), "file": .string(change.path), "lines": .array(lines.map(JSON.string))]) }
  }
}
