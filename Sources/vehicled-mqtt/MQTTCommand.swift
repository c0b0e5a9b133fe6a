// The program: its options, and errors at startup.

import ArgumentParser
import ConfigurationFiles
import Glibc
import Protocols
import SQLite
import ServiceRuntime

@main struct MQTTCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "vehicled-mqtt", abstract: "Publish the values of vehicled to an MQTT broker, and announce them to Home Assistant.",
    usage: "vehicled-mqtt [<options>]",
    discussion: "vehicled-mqtt(8) describes the configuration.", version: Protocols.version)

  @ArgumentParser.Option(help: ArgumentHelp("Read this configuration file, then FILE.d/*.toml.", valueName: "file"))
  var config: String?

  @ArgumentParser.Option(
    help: ArgumentHelp(
      "Publish the values of the daemon on this socket (default: $VEHICLED_SOCKET, daemon in [mqtt], or /run/vehicled/io.vehicled).",
      valueName: "path"))
  var daemon: String?

  @ArgumentParser.Option(
    help: ArgumentHelp(
      "Store the send queue in this directory (default: $STATE_DIRECTORY, directory in [mqtt], or /var/lib/vehicled-mqtt).",
      valueName: "directory"))
  var state: String?

  @Flag(help: "Check the configuration, print its errors, and exit.")
  var checkConfig = false

  func validate() throws {
    if daemon == "" { throw ValidationError("--daemon is empty; specify a path, or omit the option") }
    if state == "" { throw ValidationError("--state is empty; specify a directory, or omit the option") }
  }

  func run() throws {
    var configuration: MQTTConfiguration
    do {
      configuration = try MQTTConfiguration.load(config ?? MQTTConfiguration.defaultPath, isRequired: config != nil)
    } catch {
      printError(error.description)
      throw ExitCode(2)
    }
    if checkConfig { return print("ok: \(configuration.broker.description)") }
    // Ignore SIGXFSZ, so that a write beyond the file size limit fails like a write to a full disk.
    signal(SIGXFSZ, SIG_IGN)
    Journal.bootstrap(identifier: "vehicled-mqtt", level: configuration.logLevel)
    do throws(ValueError) {
      if let file = configuration.passwordFile {
        configuration.broker.password = String(decoding: try SecretFile.read(file).bytes, as: UTF8.self)
      }
    } catch {
      printError("password-file: \(error.description)")
      throw ExitCode(2)
    }
    do {
      try BridgeService(
        configuration, daemon: daemon ?? environment("VEHICLED_SOCKET") ?? configuration.daemon,
        directory: state ?? environment("STATE_DIRECTORY") ?? configuration.directory ?? "/var/lib/vehicled-mqtt",
        host: Self.hostName, loop: EventLoop()
      ).run()
    } catch {
      printError("\(error)")
      endProcess((error as? StoreError)?.isPermanent == true ? 2 : 1)
    }
    endProcess()
  }

  /// The name of this computer up to the first dot, with only characters that can be in a topic.
  private static var hostName: String {
    var bytes = [CChar](repeating: 0, count: 256)
    guard gethostname(&bytes, bytes.count - 1) == 0 else { return "localhost" }
    let name = bytes.prefix { $0 != 0 && $0 != 0x2E }.map { UInt8(bitPattern: $0) }
    let valid = name.filter { $0 > 0x20 && $0 < 0x7F && !"/#+$".utf8.contains($0) }
    return valid.isEmpty ? "localhost" : String(decoding: valid, as: UTF8.self)
  }
}

private func printError(_ text: String) { ServiceRuntime.printError(text, of: "vehicled-mqtt") }
