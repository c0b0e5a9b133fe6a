// The program: its options, and errors at startup.

import ArgumentParser
import ConfigurationFiles
import Cryptography
import Glibc
import Protocols
import ServiceRuntime
import Varlink

@main struct WebCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "vehicled-web", abstract: "Serve a page with the values of vehicled to browsers on this computer.",
    usage: "vehicled-web [<options>]",
    discussion: """
      Print a link that signs in one browser, and serve until Ctrl-C. With --config, run as a service: browsers sign in with the tokens \
      of the configuration, and no link is printed.
      vehicled-web(8) describes the configuration.
      """, version: Protocols.version)

  @ArgumentParser.Option(help: ArgumentHelp("Run as a service: read this configuration file, then FILE.d/*.toml.", valueName: "file"))
  var config: String?

  @ArgumentParser.Option(
    help: ArgumentHelp(
      "Listen on 127.0.0.1:PORT, [::1]:PORT or unix:/PATH (default: a free port, or listen in [web]).", valueName: "address"))
  var listen: String?

  @ArgumentParser.Option(
    help: ArgumentHelp("Let browsers that sign in with the link control this device; can be given several times.", valueName: "device"))
  var control: [String] = []

  @ArgumentParser.Option(
    help: ArgumentHelp(
      "Serve the daemon on this socket (default: $VEHICLED_SOCKET, daemon in [web], or /run/vehicled/io.vehicled).", valueName: "path"))
  var daemon: String?

  @ArgumentParser.Option(
    help: ArgumentHelp(
      "Serve the history service on this socket (default: $VEHICLED_HISTORY_SOCKET, history in [web], or \(HistoryContract.defaultSocket)).",
      valueName: "path"))
  var history: String?

  @ArgumentParser.Option(
    help: ArgumentHelp(
      "Read the page from this directory (default: files in [web], or the page installed with the program).", valueName: "directory"))
  var files: String?

  @Flag(help: "Check the configuration, print its errors, and exit.")
  var checkConfig = false

  func validate() throws {
    for (name, value) in [("--daemon", daemon), ("--history", history), ("--files", files)] where value == "" {
      throw ValidationError("\(name) is empty; specify a path, or omit the option")
    }
    if config != nil, !control.isEmpty {
      throw ValidationError("--control is for the link, which --config does not print; use control in [token.NAME] of the file")
    }
  }

  func run() throws {
    var configuration = WebConfiguration()
    // Without a configuration, a user runs the program: any free port will do.
    configuration.listen = .tcp(host: "127.0.0.1", port: 0)
    do {
      if let path = config ?? (checkConfig ? WebConfiguration.defaultPath : nil) { configuration = try WebConfiguration.load(path) }
      if let listen { configuration.listen = try ListenAddress(listen) }
    } catch {
      printError("\(error)")
      throw ExitCode(2)
    }
    if checkConfig { return print("ok: \(configuration.listen)") }
    configuration.daemon = daemon ?? environment("VEHICLED_SOCKET") ?? configuration.daemon
    configuration.history = history ?? environment("VEHICLED_HISTORY_SOCKET") ?? configuration.history
    configuration.files = files ?? configuration.files
    Journal.bootstrap(identifier: "vehicled-web", level: configuration.logLevel)
    if config != nil, configuration.tokens.isEmpty, configuration.metrics == nil {
      printError("no browser could sign in; add [token.NAME] with file = \"/PATH\" to the configuration, see vehicled-web(8)")
      throw ExitCode(2)
    }
    let secrets: WebSecrets
    do throws(ValueError) { secrets = try WebSecrets(configuration) } catch {
      // As for an invalid configuration: a restart does not help.
      printError(error.description)
      throw ExitCode(2)
    }
    do { try Cryptography.load() } catch {
      printError("\(error)")
      throw ExitCode(1)
    }
    do throws(ValueError) {
      // The sessions of a terminal end with it.
      try WebService(
        configuration: configuration, secrets: secrets, linkRights: config == nil ? Rights(control: Set(control)) : nil,
        sessionDirectory: config == nil ? nil : environment("RUNTIME_DIRECTORY")
      ).run()
    } catch {
      printError(error.description)
      endProcess(1)
    }
    endProcess()
  }
}

private func printError(_ text: String) { ServiceRuntime.printError(text, of: "vehicled-web") }
