// The simulated electric car is plausible: its values are consistent over minutes.

import Protocols
import Testing

@testable import Peers

@Suite("The simulated car")
struct ElectricCarTests {
  @Test("answers only the requests of its model")
  func services() {
    let modern = ElectricCar(.eGMP)
    let older = ElectricCar(.ioniq28)
    #expect(modern.replies(to: [0x21, 0x01], at: 0x7E4, 0).map(\.payload) == [[0x7F, 0x21, 0x11]])
    #expect(older.replies(to: [0x22, 0x01, 0x01], at: 0x7E4, 0).map(\.payload) == [[0x7F, 0x22, 0x11]])
    #expect(modern.replies(to: [0x22, 0x01, 0x09], at: 0x7E4, 0).map(\.payload) == [[0x7F, 0x22, 0x31]])
    #expect(modern.replies(to: [0x22], at: 0x7E4, 0).map(\.payload) == [[0x7F, 0x22, 0x13]])
    #expect(modern.replies(to: [0x22, 0x01, 0x01], at: 0x7DF, 0).map(\.id) == [0x7EC])
    #expect(modern.replies(to: [0x3E, 0x00], at: 0x7DF, 0).map(\.id) == [0x7E8, 0x7EC])
    #expect(modern.replies(to: [0x10, 0x03], at: 0x7DF, 0).isEmpty, "no negative response to a functional request")
    #expect(modern.replies(to: [0x01, 0x0C], at: 0x7E0, 0).map(\.id) == [0x7E8])
    #expect(modern.replies(to: [0x01, 0x0B], at: 0x7E0, 0).isEmpty)
    #expect(modern.replies(to: [], at: 0x7E0, 0).isEmpty)
    let bitmap: [[UInt8]] = [[0x00, 0x08, 0x18, 0x00, 0x01], [0x20, 0, 0, 0, 1], [0x40, 0x40, 0, 0, 0]]
    for record in bitmap { #expect(modern.replies(to: [0x01, record[0]], at: 0x7DF, 0).first?.payload == [0x41] + record) }
    #expect(modern.replies(to: [0x01, 0x0C, 0x0B, 0x0D, 0x42], at: 0x7DF, 0).first?.payload.count == 9)
  }

  @Test("sends a consistent battery data record for ten minutes", arguments: ElectricCar.Model.allCases)
  func record(model: ElectricCar.Model) throws {
    let car = ElectricCar(model)
    let request: [UInt8] = model == .ioniq28 ? [0x21, 0x01] : [0x22, 0x01, 0x01]
    let cells = model == .eGMP ? 192.0 : model == .kona ? 98 : 96
    let perKilometre = model == .eGMP ? 78.9 : model == .kona ? 67.2 : 62.4
    var before: [UInt8]?
    var (regeneration, charged, fastest, slowest) = (0, 0.0, 0, 0)
    for tick in 0..<12_000 {
      let now = Nanoseconds(tick) * 50 * .millisecond
      let reply = try #require(car.replies(to: request, at: 0x7E4, now).first)
      #expect(reply.id == 0x7EC && reply.payload.count == request.count + 59)
      let data = Array(reply.payload.dropFirst(request.count))
      let voltage = Double(VirtualHost.number(data, 12...13)) / 10
      let current = Double(VirtualHost.number(data, 10...11, signed: true)) / 10
      let rpm = VirtualHost.number(data, 53...54, signed: true)
      // The Kona does not respond to standard requests.
      let answer = car.replies(to: [0x01, 0x0D], at: 0x7E0, now).first?.payload[2]
      #expect((answer == nil) == (model == .kona))
      let speed = answer.map(Int.init) ?? Int(abs(car.sample(at: now).speed).rounded())
      #expect(abs(Double(VirtualHost.number(data, 51...52)) - voltage) < 3)
      #expect(Double(data[25]) / 50 * cells <= voltage + 0.01 && voltage <= Double(data[23]) / 50 * cells + 0.01)
      #expect(abs(Double(abs(rpm)) - Double(speed) * perKilometre) <= perKilometre)
      #expect((cells * 3.3...cells * 4.1).contains(voltage) && (-200...300).contains(current))
      #expect(Int8(bitPattern: data[14]) >= Int8(bitPattern: data[15]))
      #expect(VirtualHost.number(data, 46...49) == 2_301_462 + tick / 20)
      if current < -10, abs(rpm) > 300 {
        regeneration += 1
        #expect(rpm > 0, "regeneration only in forward motion")
      }
      if rpm < 0 { #expect(current > 0) }
      if let before {
        #expect(abs(rpm - VirtualHost.number(before, 53...54, signed: true)) < 100)
        #expect(abs(current - Double(VirtualHost.number(before, 10...11, signed: true)) / 10) < 8)
        #expect(abs(voltage - Double(VirtualHost.number(before, 12...13)) / 10) < 2)
        #expect(data[4] <= before[4] &+ 1, "the resolution is half a percent")
        #expect(abs(Int(Int8(bitPattern: data[16])) - Int(Int8(bitPattern: before[16]))) <= 1)
        for counter in [30...33, 34...37, 38...41, 42...45] {
          #expect(VirtualHost.number(data, counter) - VirtualHost.number(before, counter) >= 0)
        }
      }
      charged += max(0, -current)
      fastest = max(fastest, rpm)
      slowest = min(slowest, rpm)
      before = data
    }
    #expect(regeneration > 500 && charged > 0)
    #expect(fastest > 6000 && fastest < 10_000 && slowest < -300)
  }

  @Test("counts charge and energy consistent with current and voltage")
  func counters() {
    let car = ElectricCar()
    var (chargeIn, chargeOut, energyIn, energyOut) = (0.0, 0.0, 0.0, 0.0)
    for step in 0..<60_000 {
      let moment = car.sample(at: Nanoseconds(step) * 10 * .millisecond)
      let hours = 0.01 / 3600
      chargeOut += max(0, moment.current) * hours
      chargeIn += max(0, -moment.current) * hours
      energyOut += max(0, moment.current) * moment.voltage * hours / 1000
      energyIn += max(0, -moment.current) * moment.voltage * hours / 1000
    }
    let end = car.sample(at: 600 * .second)
    #expect(abs(end.chargeOut - chargeOut) < 0.005 && chargeOut > 1)
    #expect(abs(end.chargeIn - chargeIn) < 0.005 && chargeIn > 0.2)
    #expect(abs(end.energyOut - energyOut) < 0.1 && abs(end.energyIn - energyIn) < 0.1)
  }

  @Test("loses charge, and gains charge only by regeneration")
  func stateOfCharge() {
    let car = ElectricCar()
    var before = car.sample(at: 0)
    for tick in 1..<6_000 {
      let now = car.sample(at: Nanoseconds(tick) * 100 * .millisecond)
      let gained = (now.chargeIn - before.chargeIn) / 111 * 100
      #expect(now.stateOfCharge - before.stateOfCharge <= gained + 1e-9)
      before = now
    }
    #expect(before.stateOfCharge < 77.5 && before.stateOfCharge > 70)
    #expect(car.sample(at: 40 * 86_400 * .second).stateOfCharge == 5, "a month later it is low, and still drives")
    #expect(ElectricCar(origin: 50 * .second).sample(at: 0).seconds == 0)
  }

  @Test("has the motor speed at bytes 56 and 57 of the message, and at 55 and 56 on the older model")
  func offsets() {
    let now: Nanoseconds = 20 * .second  // in the first cruise at 50 km/h
    let modern = ElectricCar(.eGMP).replies(to: [0x22, 0x01, 0x01], at: 0x7E4, now).first?.payload ?? []
    let older = ElectricCar(.ioniq28).replies(to: [0x21, 0x01], at: 0x7E4, now).first?.payload ?? []
    #expect(VirtualHost.number(modern, 56...57) == 3945 && VirtualHost.number(older, 55...56) == 3120)
    #expect(ElectricCar().replies(to: [0x01, 0x0C], at: 0x7E0, now).first?.payload == [0x41, 0x0C, 0x3D, 0xA4])
  }
}
