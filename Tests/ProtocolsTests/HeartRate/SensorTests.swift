import MachineTesting
import Peers
import Testing

@testable import Protocols

/// Measurements of heart rate straps and foot pods, valid and damaged.
@Suite struct SensorTests {
  /// A machine and a sensor, which takes no commands.
  private typealias Rig<Measurement: SensorMeasurement> = Host<SensorMachine<Measurement>, PeerLink<WearableSensor>>

  private static func rate(_ bytes: [UInt8]) -> HeartRateMeasurement? { try? HeartRateMeasurement(bytes) }
  private static func run(_ bytes: [UInt8]) -> RunningMeasurement? { try? RunningMeasurement(bytes) }

  @Test func `heart rate measurements are decoded`() {
    #expect(Self.rate([0x00, 0x48])?.rate == 72)
    let interval = Self.rate([0x10, 0x48, 0x00, 0x04])
    #expect(interval?.rate == 72 && interval?.intervals == [1024])
    #expect(Self.rate([0x01, 0x2C, 0x01])?.rate == 300)
    let energy = Self.rate([0x08, 0x48, 0xE8, 0x03])
    #expect(energy?.rate == 72 && energy?.energy == 1000)
    #expect(Self.rate([0x04, 0x48])?.contact == false && Self.rate([0x06, 0x48])?.contact == true)
    #expect(Self.rate([0x00, 0x48])?.contact == nil && Self.rate([0x02, 0x48])?.contact == nil)
    let all = Self.rate([0x1F, 0x2C, 0x01, 0xE8, 0x03, 0x00, 0x04, 0x00, 0x02])
    #expect(all?.rate == 300 && all?.energy == 1000 && all?.intervals == [1024, 512] && all?.contact == true)
  }

  @Test func `running speed and cadence measurements are decoded`() {
    let plain = Self.run([0x00, 0x00, 0x03, 0xA0])
    #expect(plain?.speed == 768 && plain?.cadence == 160 && plain?.stride == nil && plain?.distance == nil && plain?.isRunning == false)
    let far = Self.run([0x02, 0x00, 0x03, 0xA0, 0x10, 0x27, 0x00, 0x00])
    #expect(far?.distance == 10_000)
    let all = Self.run([0x07, 0x00, 0x03, 0xA0, 0x6E, 0x00, 0xFF, 0xFF, 0xFF, 0xFF])
    #expect(all?.stride == 110 && all?.distance == 4_294_967_295 && all?.isRunning == true)
  }

  @Test func `a truncated or overlong measurement is rejected`() {
    let wholes: [[UInt8]] = [
      [0x00, 0x48], [0x01, 0x2C, 0x01], [0x08, 0x48, 0xE8, 0x03], [0x10, 0x48, 0x00, 0x04],
      [0x1F, 0x2C, 0x01, 0xE8, 0x03, 0x00, 0x04],
    ]
    for whole in wholes {
      #expect(Self.rate(whole) != nil)
      for count in 0..<whole.count { #expect(Self.rate(Array(whole[..<count])) == nil, "\(whole) cut to \(count)") }
      #expect(Self.rate(whole + [0]) == nil, "\(whole) and one more")
    }
    let run: [UInt8] = [0x07, 0x00, 0x03, 0xA0, 0x6E, 0x00, 0xFF, 0xFF, 0xFF, 0xFF]
    for count in 0..<run.count { #expect(Self.run(Array(run[..<count])) == nil) }
    #expect(Self.run(run + [0]) == nil && Self.run([0x00, 0x00, 0x03, 0xA0, 0x00]) == nil)
  }

  @Test func `values of a strap are converted to common units`() throws {
    var rig = try Rig<HeartRateMeasurement>(.strap)
    rig.connect()
    rig.receive([0x1F, 0x48, 0x00, 0xE8, 0x03, 0x00, 0x02, 0x00, 0x04])
    #expect(rig.number("heart-rate") == 72 && rig.number("energy-expended") == 239 && rig.number("rr-interval") == 1000)
    #expect(rig.values["contact"] == .value(.bool(true)) && rig.status == "live")
    rig.receive([0x00, 0x48])
    #expect(rig.absence("contact") == "not reported by this strap" && rig.number("energy-expended") == 239)
    rig.receive([0x14, 0x48, 0x00, 0x04])
    #expect(rig.absence("heart-rate") == "no skin contact" && rig.number("rr-interval") == nil)
    #expect(rig.values["contact"] == .value(.bool(false)))
    rig.receive([0x00, 0x00])
    #expect(rig.absence("heart-rate") == "not measured yet")
    rig.receive([0x01, 0xFF, 0xFF])
    #expect(rig.absence("heart-rate")?.contains("implausible rate of 65535 bpm") == true)
    rig.receive([0x01])
    #expect(rig.number("bad-messages") == 1 && rig.values["last-bad-message"] == .value(.string("01: the measurement is too short")))
  }

  @Test func `values of a foot pod are converted to common units`() throws {
    var rig = try Rig<RunningMeasurement>(.footPod)
    rig.connect()
    rig.receive([0x07, 0x00, 0x03, 0xA0, 0x6E, 0x00, 0x10, 0x27, 0x00, 0x00])
    #expect(rig.number("speed") == 10.8 && rig.number("cadence") == 160 && rig.number("stride-length") == 1.1)
    #expect(rig.number("distance") == 1 && rig.values["running"] == .value(.bool(true)))
    rig.receive([0x00, 0xFF, 0xFF, 0xFF])
    #expect(rig.number("speed") == 921.6 && rig.absence("stride-length") == "not reported by this sensor")
  }

  @Test func `a sensor that stops sending is reported until it sends again`() throws {
    var rig = try Rig<HeartRateMeasurement>(.strap, "silence:@20:10000")
    rig.connect()
    #expect(rig.status == "listening")
    rig.run(for: 19 * .second)
    #expect(rig.number("heart-rate") != nil && rig.fault == nil)
    rig.run(for: 8 * .second)
    #expect(rig.absence("heart-rate")?.hasPrefix("connected, but no data") == true)
    #expect(rig.status == "silent" && rig.fault != nil && rig.machine.nextWake == nil)
    rig.run(for: 10 * .second)
    #expect(rig.status == "live" && rig.fault == nil && rig.number("heart-rate") != nil)
    rig.give(.linkChanged(.main, .down("gone")))
    #expect(rig.status == "waiting" && rig.machine.nextWake == nil)
  }

  @Test(arguments: ["no-contact:3", "wide", "intervals", "energy:2", "truncated:3", "overlong:4", "silence:9:3000"])
  func `heart rates are published despite every fault of a strap`(_ fault: String) throws {
    var rig = try Rig<HeartRateMeasurement>(.strap, fault)
    rig.connect()
    rig.run(for: 121 * .second)
    #expect(rig.number("heart-rate").map { (60...170).contains($0) } == true, "\(rig.values)")
    #expect((rig.number("bad-messages") ?? 0 > 0) == (fault.hasPrefix("truncated") || fault.hasPrefix("overlong")))
  }

  @Test func `the distance of a foot pod adds up`() throws {
    var rig = try Rig<RunningMeasurement>(.footPod, "truncated:5")
    rig.connect()
    rig.run(for: 341 * .second)
    #expect(rig.number("distance").map { abs($0 - 1) < 0.01 } == true && rig.number("bad-messages") == 68)
  }

  @Test func `mutated measurements yield only values in range`() throws {
    var dice = OBDRobustnessTests.Dice(state: 0xBEA7_5EED_1234_5678)
    let rates: [[UInt8]] = [[0x00, 0x48], [0x1F, 0x2C, 0x01, 0xE8, 0x03, 0x00, 0x04, 0x00, 0x02], [0x14, 0x48, 0x00, 0x04]]
    let runs: [[UInt8]] = [[0x00, 0x00, 0x03, 0xA0], [0x07, 0x00, 0x03, 0xA0, 0x6E, 0x00, 0xFF, 0xFF, 0xFF, 0xFF]]
    var effects = Effects()
    var (whole, broken) = (0, 0)
    for turn in 0..<100_000 {
      effects.removeAll()
      let isRate = turn % 2 == 0
      let bytes = OBDRobustnessTests.mutate(isRate ? rates[dice.below(3)] : runs[dice.below(2)], &dice)
      do throws(ValueError) {
        if isRate { try HeartRateMeasurement(bytes).publish(&effects) } else { try RunningMeasurement(bytes).publish(&effects) }
        whole += 1
      } catch {
        broken += 1
      }
      let properties = isRate ? HeartRateMeasurement.properties : RunningMeasurement.properties
      for reading in effects.readings {
        guard case .value(let value) = reading.content else { continue }
        let property = properties[reading.property]
        if (try? property.rule.accept(value)) != value { Issue.record("\(property.name): \(value) of \(bytes)") }
      }
    }
    #expect(whole > 10_000 && broken > 10_000)
  }
}

@Suite struct SensorKindTests {
  /// A link on which the daemon waits for its own first message is not recorded after it came up.
  @Test func `sensors that are only listened to can be recorded from any time on`() {
    for kind in [Kind.heartRate, .footPod] {
      for role in kind.links {
        #expect(role.gatt?.profiles.allSatisfy { $0.write == nil } == true && role.onlyReceives, "\(kind.name)")
      }
    }
  }
}

extension Host {
  fileprivate init<Measurement: SensorMeasurement>(_ model: WearableSensor.Model, _ faults: String...) throws
  where Subject == SensorMachine<Measurement>, World == PeerLink<WearableSensor> {
    let sensor = WearableSensor(model, faults: try faults.map { try SensorFault($0) })
    self.init(SensorMachine<Measurement>(), PeerLink(sensor, takesBytes: false))
    start()
  }

  fileprivate mutating func receive(_ bytes: [UInt8]) { give(.received(.main, bytes)) }
}
