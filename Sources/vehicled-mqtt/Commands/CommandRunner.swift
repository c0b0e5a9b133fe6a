// Carries out the commands that clients of the broker send, and answers those with a response topic.

import Glibc
import Logging
import Protocols
import ServiceRuntime
import Varlink

final class CommandRunner: EventSource {
  /// How long a command waits for the declaration of its device after the start. Later, its sender no longer expects it.
  private static let timeout: Nanoseconds = 10 * .second
  /// The maximum number of commands that wait, and of calls at a time, each of which needs a connection to the daemon.
  private static let maxWaiting = 100
  private static let maxCalls = 4

  private let reader: CommandReader
  private let daemon: String
  private let loop: EventLoop
  private let logger = Logger(label: "vehicled-mqtt")
  /// Returns the schema of a device.
  private let schema: (String) -> Contract.Schema?
  /// Publishes a response, while there is a connection.
  private let publish: (OutgoingMessage) -> Void
  /// The commands that arrived before the daemon has declared its devices; nil once it has.
  private var waiting: [(message: IncomingMessage, until: Instant)]? = []
  /// The commands that are carried out next.
  private var pending: [(command: DaemonCommand, message: IncomingMessage)] = []
  private var callCount = 0

  init(
    _ reader: CommandReader, daemon: String, loop: EventLoop, schema: @escaping (String) -> Contract.Schema?,
    publish: @escaping (OutgoingMessage) -> Void
  ) {
    (self.reader, self.daemon, self.loop, self.schema, self.publish) = (reader, daemon, loop, schema, publish)
    super.init()
    loop.add(self)
  }

  /// Carries out the command in a message, if it is one.
  func received(_ message: IncomingMessage) {
    guard let waiting else { return carryOut(message) }
    guard reader.isCommand(message) else { return }
    guard waiting.count < Self.maxWaiting, !message.isRetained else { return carryOut(message) }
    let until = SystemClock.monotonic + Self.timeout
    self.waiting?.append((message, until))
    wake = waiting.first?.until ?? until
  }

  /// Carries out the waiting commands: the devices are declared.
  func devicesDeclared() {
    let messages = waiting ?? []
    (waiting, wake) = (nil, nil)
    for (message, _) in messages { carryOut(message) }
  }

  override func timerFired(at now: Instant) {
    let late = (waiting ?? []).filter { $0.until <= now }
    waiting?.removeAll { $0.until <= now }
    wake = waiting?.first?.until
    for (message, _) in late { reject(message, "\(message.topic): no values from vehicled yet; check that it is running") }
  }

  private func carryOut(_ message: IncomingMessage) {
    do throws(CommandRejection) {
      guard let command = try reader.command(message, schema: schema) else { return }
      guard pending.count < Self.maxWaiting else { throw CommandRejection(message: "\(message.topic): too many commands at a time") }
      pending.append((command, message))
      runNext()
    } catch {
      reject(message, error.message)
    }
  }

  private func runNext() {
    while callCount < Self.maxCalls, !pending.isEmpty {
      let (command, message) = pending.removeFirst()
      callCount += 1
      run(command, for: message)
    }
  }

  private func reject(_ message: IncomingMessage, _ reason: String) {
    logger.warning("command rejected: \(reason)")
    respond(to: message, error: reason)
  }

  private func run(_ command: DaemonCommand, for message: IncomingMessage) {
    switch command {
    case .set(let device, let property, let value):
      DaemonCall(socket: daemon, Contract.Set.self, .init(device: device, property: property, value: value), loop: loop) { [weak self] in
        self?.finished(message, "\(device).\(property)", $0.map { _ in })
      }
    case .run(let device, let action, let arguments):
      DaemonCall(
        socket: daemon, Contract.Call.self, .init(device: device, action: action, arguments: arguments.isEmpty ? nil : arguments),
        loop: loop
      ) { [weak self] in
        self?.finished(message, "\(device).\(action)", $0.map { _ in })
      }
    }
  }

  private func finished(_ message: IncomingMessage, _ reference: String, _ result: Result<Void, DaemonFailure>) {
    callCount -= 1
    defer { runNext() }
    switch result {
    case .success:
      logger.info("\(reference): command carried out")
      respond(to: message, error: nil)
    case .failure(let failure):
      logger.warning("\(reference): command failed: \(failure.message)")
      respond(to: message, error: failure.message)
    }
  }

  /// Responds on the topic that a command names, if it is one for responses: a client must not write to other topics by the bridge's rights.
  private func respond(to message: IncomingMessage, error: String?) {
    guard let topic = message.responseTopic else { return }
    guard reader.topics.isResponse(topic) else {
      return logger.warning("no response on \(topic.debugDescription); clients must use topics that begin with \(reader.topics.responses)")
    }
    let text = JSON.members(["ok": .bool(error == nil), "error": error.map { .string($0) }]).text
    publish(OutgoingMessage(topic, text.utf8, expiry: 60, correlation: message.correlation))
  }
}
