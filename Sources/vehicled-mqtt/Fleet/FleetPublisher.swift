// Publishes the values of vehicles as batches for a fleet, beside the topics for homes: the same replies of Watch, collected for some
// seconds. A device that reports nothing sends nothing.

import Observations
import Protocols
import ServiceRuntime
import Varlink

final class FleetPublisher: EventSource {
  /// The maximum size of a batch unless the broker accepts less, in bytes. AWS IoT Core, with 128 kB, has the lowest limit of the common ones.
  private static let defaultSize = 100_000
  /// The space for the topic and the properties of a packet, in bytes.
  private static let packetOverhead = 512

  private let configuration: FleetConfiguration
  private let vehicle: String
  private let send: ([OutgoingMessage]) -> Void
  private let session = String(Int.random(in: 0x1000_0000...0xFFFF_FFFF), radix: 16)
  private var intake: WatchIntake
  private var collectors: [String: BatchCollector] = [:]
  private var sequence = 0
  /// The maximum size of a batch in bytes.
  private var maxSize = defaultSize
  /// When the daemon sent its latest reply, in µs of the boot: the latest values were valid until then.
  private var lastResponse: Int64 = 0

  /// `host` is the name of the vehicle unless the configuration has one. `watchInterval` is the minimum interval of the watch, in ms. `send`
  /// queues messages.
  init(
    _ configuration: FleetConfiguration, host: String, watchInterval: Int, loop: EventLoop, send: @escaping ([OutgoingMessage]) -> Void
  ) {
    (self.configuration, self.send) = (configuration, send)
    intake = WatchIntake(at: .now, minimumInterval: watchInterval)
    vehicle = configuration.vehicle ?? host
    super.init()
    loop.add(self)
  }

  /// Limits the size of batches to what the broker accepts.
  func connected(_ limits: BrokerLimits) {
    maxSize = min(Self.defaultSize, max(1, (limits.packetSize ?? .max) - Self.packetOverhead))
  }

  /// Learns the lifetimes of values.
  func describe(_ schemas: [Contract.Schema]) { intake.describe(schemas) }

  /// Collects the values of a reply.
  func apply(_ result: Contract.Watch.Result) {
    let clock = ClockReading.now
    let (observations, removed) = intake.read(result, at: clock)
    lastResponse = intake.lastSent
    collect(observations)
    for device in removed {
      cut(device)
      collectors[device] = nil
    }
    if wake == nil, collectors.values.contains(where: { !$0.isEmpty }) { wake = SystemClock.monotonic + configuration.interval }
  }

  private func collect(_ observations: [Observation]) {
    for observation in observations {
      let kind = intake.kind(of: observation.device) ?? ""
      guard configuration.selection.includes(observation.device, kind: kind, observation.property) else { continue }
      collectors[observation.device, default: BatchCollector(device: observation.device)].append(observation)
      if collectors[observation.device]?.isFull == true { cut(observation.device) }
    }
  }

  /// Sends what was collected, because the connection to the daemon has ended. The next values follow a gap.
  func interrupt() {
    collect(intake.endUnconfirmed())
    flush()
    collectors = [:]
    intake.restart()
  }

  /// Sends what was collected.
  private func flush() {
    wake = nil
    for device in collectors.keys.sorted() { cut(device) }
  }

  override func timerFired(at now: Instant) { flush() }

  private func cut(_ device: String) {
    let identity = BatchCollector.Identity(vehicle: vehicle, session: session, sequence: sequence + 1)
    let batches = collectors[device]?.cut(at: lastResponse, .now, identity, maxSize: maxSize) ?? []
    sequence += batches.count
    let topic = Topics.batches(tenant: configuration.tenant, vehicle: vehicle)
    send(batches.map { OutgoingMessage(topic, $0) })
  }
}
