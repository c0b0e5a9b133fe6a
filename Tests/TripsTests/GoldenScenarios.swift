// The golden set: awkward drives as scripts, and the periods that they must give. Times are seconds since the start of the script.

import Protocols
import Trips

struct Scenario: Sendable, CustomStringConvertible {
  let name: String
  let model: SimulatedVehicle.Model
  /// `trip 10-20`; `open` for a period that has not ended.
  let expected: [String]
  let script: @Sendable (inout SimulatedVehicle) -> Void

  var description: String { name }

  func run() -> SimulatedVehicle {
    var vehicle = SimulatedVehicle(model)
    script(&vehicle)
    return vehicle
  }

  init(
    _ name: String, _ model: SimulatedVehicle.Model, _ expected: [String], _ script: @escaping @Sendable (inout SimulatedVehicle) -> Void
  ) {
    (self.name, self.model, self.expected, self.script) = (name, model, expected, script)
  }
}

extension Scenario {
  static let golden = drives + losses + charges + others

  private static let drives = [
    Scenario("a commute", .eGMP, ["parking 0-60", "trip 60-1259", "parking 1259-open"]) {
      $0.park(60)
      $0.drive(1200, 60)
      $0.park(600)
    },
    Scenario("a stop to close the garage door, with the ignition off", .kona, ["parking 0-60", "trip 60-809", "parking 809-open"]) {
      $0.park(60)
      $0.drive(30, 10)
      $0.park(120)
      $0.drive(600, 50)
      $0.park(400)
    },
    Scenario("the ignition is on before the drive", .kona, ["parking 0-60", "trip 60-739", "parking 739-open"]) {
      $0.park(60)
      $0.ignition = true
      $0.idle(80)
      $0.drive(600, 50)
      $0.park(400)
    },
    Scenario("the radio is on for half an hour before the drive", .kona, ["parking 0-1860", "trip 1860-2459", "parking 2459-open"]) {
      $0.park(60)
      $0.ignition = true
      $0.idle(1800)
      $0.drive(600, 50)
      $0.park(400)
    },
    Scenario("a traffic jam of 10 min", .eGMP, ["parking 0-60", "trip 60-1859", "parking 1859-open"]) {
      $0.park(60)
      $0.drive(600, 60)
      $0.idle(600)
      $0.drive(600, 60)
      $0.park(400)
    },
    Scenario("a traffic jam of 10 min in a petrol car", .petrol, ["parking 0-60", "trip 60-1859", "parking 1859-open"]) {
      $0.park(60)
      $0.drive(600, 60)
      $0.idle(600)
      $0.drive(600, 60)
      $0.park(1200)
    },
    Scenario("a drive-through with READY on", .kona, ["parking 0-60", "trip 60-1409", "parking 1409-open"]) {
      $0.park(60)
      $0.drive(300, 40)
      for _ in 0..<3 {
        $0.idle(120)
        $0.drive(10, 5)
      }
      $0.gear = "park"
      $0.idle(240)
      $0.drive(420, 40)
      $0.park(400)
    },
    Scenario(
      "shopping for half an hour", .eGMP, ["parking 0-60", "trip 60-659", "parking 659-2460", "trip 2460-3059", "parking 3059-open"]
    ) {
      $0.park(60)
      $0.drive(600, 50)
      $0.park(1800)
      $0.drive(600, 50)
      $0.park(400)
    },
    Scenario(
      "a ferry: 40 min in park, switched on", .kona,
      ["parking 0-60", "trip 60-659", "parking 659-3060", "trip 3060-3659", "parking 3659-open"]
    ) {
      $0.park(60)
      $0.drive(600, 50)
      $0.gear = "park"
      $0.idle(2400)
      $0.drive(600, 50)
      $0.park(400)
    },
    Scenario("no more than a metre in the garage", .eGMP, ["parking 0-open"]) {
      $0.park(60)
      $0.drive(4, 4)
      $0.park(400)
      $0.park(60)
    },
  ]

  private static let losses = [
    Scenario("90 s of lost Bluetooth during the drive", .eGMP, ["parking 0-60", "trip 60-1349", "parking 1349-open"]) {
      $0.park(60)
      $0.drive(600, 60)
      $0.offline(90, 60, power: 10)
      $0.drive(600, 60)
      $0.park(400)
    },
    Scenario("Bluetooth is lost for 10 min during the drive", .eGMP, ["parking 0-60", "trip 60-1859", "parking 1859-open"]) {
      $0.park(60)
      $0.drive(600, 60)
      $0.state("waiting")
      $0.offline(600, 60, power: 10)
      $0.state("polling")
      $0.drive(600, 60)
      $0.park(400)
    },
    Scenario("no data for 40 min, in which the odometer moved", .eGMP, ["parking 0-60", "trip 60-3659", "parking 3659-open"]) {
      $0.park(60)
      $0.drive(600, 80)
      $0.offline(2400, 80, power: 15)
      $0.drive(600, 80)
      $0.park(400)
    },
    Scenario("the adapter is plugged in after a third of the drive", .eGMP, ["parking 0-119", "trip 119-2039", "parking 2039-open"]) {
      $0.park(120)
      $0.offline(720, 60, power: 10)
      $0.drive(1200, 60)
      $0.park(400)
    },
    Scenario("a drive without the adapter", .eGMP, ["parking 0-599", "trip 599-8200", "parking 8200-open"]) {
      $0.park(600)
      $0.offline(3000)
      $0.offline(600, 60, power: 10)
      $0.offline(4000)
      $0.park(400)
    },
    Scenario(
      "a drive without the adapter, between two times in which the car is asleep", .eGMP,
      ["parking 0-60", "trip 60-659", "parking 659-3059", "trip 3059-6659", "parking 6659-9859", "trip 9859-10458", "parking 10458-open"]
    ) {
      $0.park(60)
      $0.drive(600, 60)
      $0.sleep(2399)
      $0.state("waiting")
      $0.offline(1800)
      $0.offline(1800, 80, power: 10)
      $0.state("car-asleep")
      $0.sleep(3200)
      $0.state("polling")
      $0.drive(600, 60)
      $0.park(400)
    },
    Scenario("a power cut during the drive", .eGMP, ["parking 0-60", "trip 60-1309", "parking 1309-open"]) {
      $0.park(60)
      $0.drive(600, 60)
      $0.offline(50, 60, power: 10)
      // The stored odometer is published before the current one is read.
      $0.emit(.odometer, 20_009)
      $0.drive(600, 60)
      $0.park(400)
    },
    Scenario("a stored odometer after an hour without power", .eGMP, ["parking 0-60", "trip 60-4859", "parking 4859-open"]) {
      $0.park(60)
      $0.drive(600, 60)
      $0.offline(3600, 60, power: 10)
      $0.emit(.odometer, 20_009)
      $0.drive(600, 60)
      $0.park(400)
    },
    Scenario(
      "the adapter is off with the ignition", .petrol,
      ["parking 0-30", "trip 30-629", "parking 629-1230", "trip 1230-1829", "parking 1829-open"]
    ) {
      $0.park(30)
      $0.drive(600, 50)
      $0.park(3)
      $0.offline(597)
      $0.drive(600, 50)
      $0.park(3)
      $0.offline(1200)
    },
    Scenario(
      "the car sleeps at night", .eGMP, ["parking 0-60", "trip 60-659", "parking 659-40300", "trip 40300-40899", "parking 40899-open"]
    ) {
      $0.park(60)
      $0.drive(600, 50)
      $0.park(640)
      $0.state("parked")
      $0.sleep(39_000)
      $0.state("polling")
      $0.drive(600, 50)
      $0.park(400)
    },
    Scenario("the speed is missing for 3 min", .eGMP, ["parking 0-60", "trip 60-1439", "parking 1439-open"]) {
      $0.park(60)
      $0.drive(600, 60)
      $0.absent = [.speed, .motorSpeed]
      $0.drive(180, 60)
      $0.absent = []
      $0.drive(600, 60)
      $0.park(400)
    },
    Scenario("the gear is missing for 3 min in a jam", .eGMP, ["parking 0-60", "trip 60-1859", "parking 1859-open"]) {
      $0.park(60)
      $0.drive(600, 60)
      $0.absent = [.gear]
      $0.idle(600)
      $0.absent = []
      $0.drive(600, 60)
      $0.park(400)
    },
  ]

  private static let charges = [
    Scenario("charging at home", .eGMP, ["parking 0-60", "trip 60-659", "parking 659-open", "charge 780-4379"]) {
      $0.park(60)
      $0.drive(600, 50)
      $0.park(120)
      $0.plugIn(3600, kilowatts: 7)
      $0.park(2400)
    },
    Scenario("regeneration on a descent of 5 min is no charge", .eGMP, ["parking 0-60", "trip 60-959", "parking 959-open"]) {
      $0.park(60)
      $0.drive(300, 60)
      $0.drive(300, 50, power: -12)
      $0.drive(300, 60)
      $0.park(400)
    },
    Scenario(
      "charging between two legs", .eGMP,
      ["parking 0-60", "trip 60-1859", "parking 1859-2990", "charge 1890-2959", "trip 2990-4789", "parking 4789-open"]
    ) {
      $0.park(60)
      $0.drive(1800, 85, power: 20)
      $0.park(30)
      $0.plugIn(1070, kilowatts: 120)
      $0.park(30)
      $0.drive(1800, 85, power: 20)
      $0.park(400)
    },
    Scenario(
      "a charge of 3 min splits a leg", .kona,
      ["parking 0-60", "trip 60-659", "parking 659-860", "charge 670-850", "trip 860-1459", "parking 1459-open"]
    ) {
      $0.park(60)
      $0.drive(600, 50)
      $0.park(10)
      $0.plugIn(180, kilowatts: 50)
      $0.park(10)
      $0.drive(600, 50)
      $0.park(400)
    },
    Scenario(
      "the car is switched on while it is charging", .kona, ["parking 0-400", "charge 100-400", "trip 400-1009", "parking 1009-open"]
    ) {
      $0.park(100)
      $0.plugIn(200, kilowatts: 50)
      $0.plugIn(100, kilowatts: 50, ignition: true)
      $0.idle(10)
      $0.drive(600, 50)
      $0.park(400)
    },
    Scenario("a charging pause of 20 min", .eGMP, ["parking 0-open", "charge 100-4899"]) {
      $0.park(100)
      $0.plugIn(1800, kilowatts: 7)
      $0.park(1200)
      $0.plugIn(1800, kilowatts: 7)
      $0.park(2400)
    },
    Scenario("two charges", .eGMP, ["parking 0-open", "charge 100-1899", "charge 5500-7299"]) {
      $0.park(100)
      $0.plugIn(1800, kilowatts: 7)
      $0.park(3600)
      $0.plugIn(1800, kilowatts: 7)
      $0.park(2400)
    },
    Scenario("a charge that is resumed after two hours without data counts once", .eGMP, ["parking 0-open", "charge 100-10899"]) {
      $0.charge = 20
      $0.park(100)
      $0.plugIn(1800, kilowatts: 7)
      $0.offline(7200, power: -7)
      $0.plugIn(1800, kilowatts: 7)
      $0.park(2400)
    },
    Scenario("a charge while no data arrived", .eGMP, ["parking 0-open", "charge 99-10900"]) {
      $0.charge = 20
      $0.park(100)
      $0.offline(10_800, power: -7)
      $0.park(2400)
    },
    Scenario("a single wrong current is no charge", .eGMP, ["parking 0-open"]) {
      $0.park(300)
      $0.emit(.batteryCurrent, -120)
      $0.park(300)
    },
  ]

  private static let others = [
    Scenario("towing: the wheels turn with the ignition off", .kona, ["parking 0-60", "trip 60-659", "parking 659-open"]) {
      $0.park(60)
      $0.gear = "neutral"
      $0.tow(600, 40)
      $0.park(400)
    },
    Scenario("transport on a lorry", .kona, ["parking 0-open"]) {
      $0.park(3000)
    },
    Scenario("an E-GMP car that reports neither gear nor ignition", bare, ["parking 0-60", "trip 60-1859", "parking 1859-open"]) {
      $0.park(60)
      $0.drive(600, 60)
      $0.idle(600)
      $0.drive(600, 60)
      $0.park(610)
      $0.state("parked")
      $0.park(60)
    },
    Scenario("an E-GMP car with nothing but the battery record", battery, ["parking 0-60", "trip 60-659", "parking 659-open"]) {
      $0.park(60)
      $0.drive(600, 60)
      $0.park(1000)
    },
    Scenario(
      "a petrol car that falls asleep before the idle timeout", .petrol,
      ["parking 0-60", "trip 60-659", "parking 659-2160", "trip 2160-2759", "parking 2759-open"]
    ) {
      $0.park(60)
      $0.drive(600, 60)
      $0.park(620)
      $0.sleep(880)
      $0.state("polling")
      $0.drive(600, 60)
      $0.park(30)
      $0.sleep(600)
    },
    Scenario("a longboard ride with a break of 10 min", .board, ["parking 0-20", "trip 20-2019", "parking 2019-open"]) {
      $0.park(20)
      $0.drive(700, 25, power: 0.4)
      $0.idle(600)
      $0.drive(700, -20, power: 0.3)
      $0.sleep(1200, state: "waiting")
    },
    Scenario("wrong values", .eGMP, ["parking 0-300", "trip 300-899", "parking 899-open"]) {
      $0.park(100)
      $0.emit(.speed, 499)
      $0.park(100)
      $0.emit(.odometer, 16_777_215)
      $0.emit(.energyIn, 429_496_729)
      $0.park(100)
      $0.drive(300, 50)
      $0.emit(.speed, 254)
      $0.emit(.speed, .nan)
      $0.emit(.batteryCurrent, 1e30)
      $0.emit(.stateOfCharge, 0)
      $0.emit(.odometer, 0)
      $0.drive(300, 50)
      $0.park(400)
    },
  ]

  private static let bare = SimulatedVehicle.Model(gear: false)
  private static let battery = SimulatedVehicle.Model(gear: false, speed: false, odometerResolution: nil)
}
