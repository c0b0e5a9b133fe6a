// The built-in facts of the simulated server: facts that toys ship with, and facts that toys download.

extension TriviaFact {
  /// All facts, with ids from 1 (shipped) and from 500 (to download).
  public static let builtIn: [TriviaFact] = numbered(shippedTexts, from: 1) + numbered(downloadTexts, from: TriviaUser.lastShippedFact + 1)

  private static func numbered(_ texts: [String], from first: Int) -> [TriviaFact] {
    texts.enumerated().map { TriviaFact(first + $0.offset, stored: $0.element) }
  }

  private static let shippedTexts = [
    "Honey never spoils.",
    "An octopus has three hearts and blue blood.",
    "A day on Venus is longer than a year on Venus.",
    "Bananas are berries, and strawberries are not.",
    "Light from the Sun takes a little more than eight minutes to reach the Earth.",
    "Sharks are older than trees.",
    "The heart of a blue whale weighs as much as a motorcycle.",
    "Water expands by about nine percent when it freezes.",
    "The Eiffel Tower grows by some centimetres on a hot day.",
    "Sea otters hold hands while they sleep.",
    "The shortest war in history, between Britain and Zanzibar in 1896, was over in less than an hour.",
    "A group of flamingos is called a flamboyance.",
    "Wombats leave cubes when they go.",
    "There are more ways to shuffle a pack of cards than atoms on the Earth.",
    "Scotland's national animal is the unicorn.",
    "The dot over the letter i is called a tittle.",
    "Saturn would float in a bath tub, if there were one of its size.",
    "The wood frog can freeze in winter and thaw in spring.",
    "Cleopatra lived closer in time to the first Moon landing than to the building of the Great Pyramid.",
    "Sound travels more than four times as fast in water as in air.",
    "The fingerprints of koalas look much like ours.",
    "Oxford's university is older than the Aztec Empire.",
    "The longest place name in use, that of a hill in New Zealand, has 85 letters.",
    "A bolt of lightning is several times hotter than the surface of the Sun.",
  ]

  private static let downloadTexts = [
    "Some turtles breathe through their rear ends while they winter under ice.",
    "The first alarm clock of Levi Hutchins could ring at four in the morning only.",
    "The Moon moves away from the Earth by almost four centimetres every year.",
    "Cows have best friends, and are calmer in their company.",
    "The inventor of the Pringles can had part of his ashes buried in one.",
    "Mercury is the only metal that is liquid at room temperature and freezes at minus 39 degrees.",
    "A teaspoon of a neutron star would weigh about as much as a mountain.",
    "Peanuts are not nuts, but beans of a kind that ripen under the ground.",
    "The Pacific Ocean is larger than all land together.",
    "Crows remember the faces of people who treated them badly.",
    "In Switzerland it is against the law to keep just one guinea pig.",
    "The first computer mouse was made of wood.",
    "Butterflies taste with their feet.",
    "Antarctica is the largest desert of the world.",
    "The human body has 206 bones; a baby has almost 300.",
    "Russia and the United States are less than four kilometres apart, between two islands in the Bering Strait.",
    "The unit of a hundredth of a second was called a jiffy by some, and of a sixtieth by others.",
    "A cloud of ordinary size weighs some hundred tonnes and floats all the same.",
  ]
}
