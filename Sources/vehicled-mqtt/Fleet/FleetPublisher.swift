// Publishes the values of vehicles as batches for a fleet, beside the topics for homes: the same replies of Watch, collected for some
// seconds. A device that reports nothing sends nothing.

import Observations
import Protocols
import ServiceRuntime
import Varlink

final class FleetPublisher: EventSource {
  private let configuration: FleetConfiguration
  private let vehicle: String
  private let send: ([OutgoingMessage]) -> Void
  private let session = String(Int.random(in: 0x1000_0000...0xFFFF_FFFF), radix: 16)
  private var intake = WatchIntake()
  private var collectors: [String: BatchCollector] = [:]
  private var sequence = 0
  /// When the daemon last responded, in µs of the boot: the latest values were valid until then.
  private var lastResponse: Int64 = 0

  /// `host` is the name of the vehicle unless the configuration has one. `send` queues messages.
  init(_ configuration: FleetConfiguration, host: String, loop: EventLoop, send: @escaping ([OutgoingMessage]) -> Void) {
    (self.configuration, self.send) = (configuration, send)
    vehicle = configuration.vehicle ?? host
    super.init()
    loop.add(self)
  }

  /// Collects the values of a reply.
  func apply(_ result: Contract.Watch.Result) {
    let clock = ClockReading.now
    lastResponse = clock.boot
    let (observations, removed) = intake.read(result, at: clock)
    for observation in observations {
      let kind = intake.kind(of: observation.device) ?? ""
      guard configuration.selection.includes(observation.device, kind: kind, observation.property) else { continue }
      collectors[observation.device, default: BatchCollector(device: observation.device)].append(observation)
      if collectors[observation.device]?.isFull == true { cut(observation.device) }
    }
    for device in removed {
      cut(device)
      collectors[device] = nil
    }
    if wake == nil, collectors.values.contains(where: { !$0.isEmpty }) { wake = SystemClock.monotonic + configuration.interval }
  }

  /// Sends what was collected, because the connection to the daemon has ended. The next values follow a gap.
  func interrupt() {
    flush()
    collectors = [:]
    intake.restart()
  }

  /// Sends what was collected.
  func flush() {
    wake = nil
    for device in collectors.keys.sorted() { cut(device) }
  }

  override func timerFired(at now: Instant) { flush() }

  private func cut(_ device: String) {
    let identity = BatchCollector.Identity(vehicle: vehicle, session: session, sequence: sequence + 1)
    guard let batch = collectors[device]?.cut(at: lastResponse, .now, identity) else { return }
    sequence += 1
    send([OutgoingMessage(Topics.batches(tenant: configuration.tenant, vehicle: vehicle), batch)])
  }
}
